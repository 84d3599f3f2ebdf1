// Python's frames, code objects and strings, laid out as CPython does: right ones are read as the
// public API says, wrong ones (another layout, a table of offsets that lies, what was overwritten)
// are found to be different before anything of theirs is believed.
#include <vector>

#include "input.h"
#include "python/code_text.h"
#include "python/self_check.h"
#include "python/walk.h"
#include "recorder.h"

namespace flame::python {
struct Object {};
struct ThreadState {};
}  // namespace flame::python

namespace {

using namespace flame::python;

constexpr size_t kRuntimeSize = 1024;

// What the public API knows of an object.
struct Text {
  Block raw;
  std::string utf8;
  bool readable;
};
struct Code {
  Block raw, table;
  size_t qualname, filename;  // of the texts
};
struct Frame : Object {
  Block raw;
  size_t code;
  int32_t lasti;
  int line;
  bool shown;
  Frame(Block&& made) : raw(std::move(made)) {}
};

struct Scene {
  Input in;
  Offsets offsets = {};  // by which everything is laid out
  std::vector<Text> texts{};
  std::vector<Code> codes{};
  std::vector<std::unique_ptr<Frame>> frames{};  // innermost first
  std::unique_ptr<Block> thread{}, holder{};

  template <class Value>
  void set(const Block& block, size_t offset, Value value) {
    if (offset + sizeof value <= block.size()) memcpy(block.data() + offset, &value, sizeof value);
  }

  static void append_utf8(std::string* to, uint32_t point) {
    if (point < 0x80) return to->push_back(char(point));
    const int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
    to->push_back(char((0xf00 >> (more + 1) & 0xf0) | point >> 6 * more));
    for (int i = more - 1; i >= 0; i--) to->push_back(char(0x80 | (point >> 6 * i & 0x3f)));
  }

  static uint32_t largest(uint32_t width) {
    return width == 1 ? 0xff : width == 2 ? 0xffff : 0x10ffff;
  }

  // Of PEP 393: `width` bytes a character, compact, and one that is 0 behind them.
  void add_text() {
    const uint32_t kind = in.below(4);  // 0: ASCII
    const uint32_t width = kind == 3 ? 4 : kind ? kind : 1;
    std::string characters, utf8;
    bool readable = true;
    const size_t length = in.byte() == 255 ? in.take<uint16_t>() % 5000 : in.below(20);
    for (size_t i = 0; i < length; i++) {
      uint32_t point = in.take<uint32_t>() & largest(width);
      if (!kind) point &= 0x7f;
      if (point > 0x10ffff) point = '?';
      readable = readable && (point < 0xd800 || point > 0xdfff);
      characters.append(reinterpret_cast<const char*>(&point), width);
      append_utf8(&utf8, point);
    }
    const size_t head = kind ? offsets.text_compact : offsets.text_ascii;
    const Block raw(std::string(head, 0) + characters + std::string(width, 0));
    set(raw, offsets.text_length, int64_t(length));
    set(raw, offsets.text_state, uint32_t(width << 2 | 1 << 5 | (kind ? 0 : 1) << 6));
    texts.push_back({Block(std::string(raw.data(), raw.size())), utf8, readable});
  }

  void add_code() {
    const std::string lines = in.bytes(in.byte() == 255 ? 1000 : 60);
    Code code{Block(std::string(offsets.code_bytecode + 8u, 0)),
              Block(std::string(offsets.bytes_data, 0) + lines), in.byte() % texts.size(),
              in.byte() % texts.size()};
    set(code.table, offsets.bytes_size, int64_t(lines.size()));
    set(code.raw, offsets.code_flags, uint32_t{in.byte()});
    set(code.raw, offsets.code_first_line, in.flag() ? uint32_t{in.byte()} : in.take<uint32_t>());
    if (offsets.code_version) set(code.raw, offsets.code_version, uint32_t{in.below(4)});
    set(code.raw, offsets.code_filename, texts[code.filename].raw.data());
    set(code.raw, offsets.code_qualname, texts[code.qualname].raw.data());
    set(code.raw, offsets.code_linetable, code.table.data());
    set(code.raw, offsets.code_first_traceable, uint32_t{in.below(4)});
    codes.push_back(std::move(code));
  }

  void add_frame() {
    auto frame = std::make_unique<Frame>(Block(std::string(offsets.frame_owner + 1u, 0)));
    frame->code = in.byte() % codes.size();
    const Block& code = codes[frame->code].raw;
    const uint8_t owner = in.below(5);
    frame->lasti = in.byte() * 2 - 2;
    const int first = Trusted().load<int32_t>(code.data(), offsets.code_first_traceable) * 2;
    frame->shown = owner < kFirstShim && (owner == kOwnedByGenerator || frame->lasti >= first);
    frame->line = int(line_of(Trusted(), code.data(), frame->lasti, offsets));
    set(frame->raw, offsets.frame_code, code.data());
    set(frame->raw, offsets.frame_instruction,
        reinterpret_cast<uintptr_t>(code.data()) + offsets.code_bytecode +
            uintptr_t(intptr_t{frame->lasti}));
    set(frame->raw, offsets.frame_owner, owner);
    if (!frames.empty()) set(frames.back()->raw, offsets.frame_previous, frame->raw.data());
    frames.push_back(std::move(frame));
  }

  void add_thread() {
    char* first = frames.empty() ? nullptr : frames[0]->raw.data();
    thread = std::make_unique<Block>(std::string(offsets.thread_frame + 8u, 0));
    holder = std::make_unique<Block>(std::string(offsets.cframe_frame + 8u, 0));
    set(*holder, offsets.cframe_frame, first);
    set(*thread, offsets.thread_frame, offsets.through_cframe ? holder->data() : first);
  }

  void build() {
    for (unsigned i = 1 + in.below(4); i; i--) add_text();
    for (unsigned i = 1 + in.below(4); i; i--) add_code();
    const size_t depth = in.byte() == 255 ? in.take<uint16_t>() % 600 : in.below(8);
    for (size_t i = 0; i < depth; i++) add_frame();
    add_thread();
  }

  Block& any_object() {
    switch (in.below(5)) {
      case 0: return texts[in.byte() % texts.size()].raw;
      case 1: return codes[in.byte() % codes.size()].raw;
      case 2: return codes[in.byte() % codes.size()].table;
      case 3: return frames.empty() ? *holder : frames[in.byte() % frames.size()]->raw;
      default: return *thread;
    }
  }

  // A number, or where another object lies.
  void damage() {
    const Block& object = any_object();
    const size_t at = in.byte() % object.size();
    if (in.flag()) return set(object, at, in.number());
    set(object, at, any_object().data() + in.byte());
  }

  // Those of another version of CPython, or of one that tells nonsense; false: it is refused.
  bool wrong_offsets(Offsets* wrong) {
    if (in.flag()) return find_offsets(11 + in.below(2), nullptr, wrong);
    const int minor = 13 + in.below(2);
    std::string runtime("xdebugpy\0\0\0\0\0\3\0\0\0\0\0\0\0\0\0", 24);
    runtime[10] = char(minor);
    runtime[11] = 3;
    runtime[13] = 0;
    for (size_t i = 0; i < 80; i++) {
      const uint64_t offset = in.number();
      runtime.append(reinterpret_cast<const char*>(&offset), sizeof offset);
    }
    runtime.resize(kRuntimeSize);
    return find_offsets(minor, Block(runtime).data(), wrong);
  }
};

// The public API, which knows what the scene is.

Scene* scene;

const Frame* next_shown(size_t at) {
  while (at < scene->frames.size() && !scene->frames[at]->shown) at++;
  return at < scene->frames.size() ? scene->frames[at].get() : nullptr;
}

Object* as_object(const void* any) { return static_cast<Object*>(const_cast<void*>(any)); }
const Frame& frame_of(Object* object) { return *static_cast<const Frame*>(object); }

Object* thread_frame(ThreadState*) { return const_cast<Frame*>(next_shown(0)); }

Object* frame_back(Object* object) {
  size_t at = 0;
  while (scene->frames[at].get() != object) at++;
  return const_cast<Frame*>(next_shown(at + 1));
}

Object* frame_code(Object* object) {
  return as_object(scene->codes[frame_of(object).code].raw.data());
}

int frame_lasti(Object* object) { return frame_of(object).lasti; }

int frame_line(Object* object) { return frame_of(object).line; }

Object* attribute(Object* object, const char* name) {
  for (const Code& code : scene->codes)
    if (code.raw.data() == static_cast<void*>(object))
      return as_object(&scene->texts[strcmp(name, "co_qualname") ? code.filename : code.qualname]);
  return nullptr;
}

const char* as_utf8(Object* object, intptr_t* size) {
  const Text& text = *static_cast<const Text*>(static_cast<void*>(object));
  if (!text.readable) return nullptr;
  *size = intptr_t(text.utf8.size());
  return text.utf8.data();
}

void take_error(Object** type, Object** value, Object** trace) { *type = *value = *trace = nullptr; }

Api api_of_scene() {
  Api api = {};
  api.major = 3, api.minor = 11;
  api.thread_frame = thread_frame;
  api.frame_back = frame_back;
  api.frame_code = frame_code;
  api.frame_line = frame_line;
  api.frame_lasti = frame_lasti;
  api.attribute = attribute;
  api.as_utf8 = as_utf8;
  api.release = [](Object*) {};
  api.disable_gc = api.enable_gc = [] { return 1; };
  api.take_error = take_error;
  api.put_error = [](Object*, Object*, Object*) {};
  return api;
}

bool negative_line(const Scene& made) {
  for (const auto& frame : made.frames)
    if (frame->shown && frame->line < 0) return true;
  return false;
}

void check_right(Scene& made, ThreadState* own, const Api& api) {
  static Stack none, first, second;
  const auto* raw = made.thread->data();
  walk(Trusted(), raw, made.offsets, none, &first);
  walk(Trusted(), raw, made.offsets, first, &second);
  require(first.depth == second.depth && !second.fresh, "the same stack is known again");
  const Verdict verdict = check_walk(api, own, made.offsets);
  require(verdict == kEqual || (!first.depth && verdict == kNothingToCompare) ||
              negative_line(made),
          "a right layout is found to be right");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Scene made{{data, size}};
  scene = &made;
  find_offsets(11 + made.in.below(2), nullptr, &made.offsets);
  made.build();
  const Api api = api_of_scene();
  auto* own = static_cast<ThreadState*>(static_cast<void*>(made.thread->data()));
  if (made.in.flag()) return check_right(made, own, api), 0;
  Offsets offsets = made.offsets;
  if (made.in.flag() && !made.wrong_offsets(&offsets)) return 0;
  for (unsigned i = made.in.below(6); i; i--) made.damage();
  check_walk(api, own, offsets);
  return 0;
}
