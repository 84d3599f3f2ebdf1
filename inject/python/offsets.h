// Finds where CPython keeps what a walk over a thread's frames reads.
#pragma once
#include <cstddef>
#include <cstdint>

namespace flame::python {

// Offsets in bytes of fields of CPython's private structs.
struct Offsets {
  uint16_t thread_frame;  // PyThreadState: the innermost frame, or what holds it
  bool through_cframe;    // 3.11 and 3.12 go through a _PyCFrame
  uint16_t cframe_frame;  // _PyCFrame: the innermost frame

  uint16_t frame_code, frame_previous, frame_instruction, frame_owner;  // _PyInterpreterFrame
  uintptr_t code_mask;  // bits of `frame_code` that are the pointer: 3.14 has tags in it

  // PyCodeObject; `code_version` is 0 where code objects have no number of their own (3.11)
  uint16_t code_flags, code_first_line, code_version, code_filename, code_qualname;
  uint16_t code_linetable, code_first_traceable, code_bytecode;

  uint16_t text_length, text_state, text_ascii, text_compact;  // PyUnicodeObject
  uint16_t bytes_size, bytes_data;                             // PyBytesObject
};

// What `_PyInterpreterFrame.owner` says.
constexpr uint8_t kOwnedByGenerator = 1;
constexpr uint8_t kFirstShim = 3;  // from here on it is no frame of Python code (3.12 and later)

// The offsets of CPython 3.`minor`, false when they are not known. `runtime` is the address of
// `_PyRuntime`, which from 3.13 on begins with a table of most of them.
bool find_offsets(int minor, const char* runtime, Offsets* offsets);

}  // namespace flame::python
