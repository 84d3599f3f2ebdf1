// What the files of the base (settings, schema, file, rescue, writer, thread, names, about, helper,
// control, life) know of one another; the other parts include flame.h only. Order of the locks:
// life, names, chunks, file; with those of threads and helper nothing else is locked.
#pragma once
#include <poll.h>

#include <atomic>
#include <cerrno>
#include <mutex>

#include "system/clock.h"
#include "flame.h"

namespace flame {

// process/lifecycle.cpp

enum Life : uint32_t {
  kOff,      // there is no dump and there will be none
  kOn,       // records are written
  kFullUp,   // there is no more room: records are counted, not written
  kAsleep,   // a forked child that has not recorded anything yet
  kOver,     // the dump has ended
};
extern std::atomic<uint32_t>& life;  // kOff again in a child of a fork that nobody was told of
extern std::mutex life_lock;

void run_flush_work(bool last);
void finish(uint32_t header_flags);  // last flush, then the dump is ended; once, later calls do nothing

// dump/file.cpp: the dump as a file that is mapped and grows ahead of its writers

extern std::mutex file_lock;
bool open_file();
int open_folder();                   // where dumps go, if it can be trusted; else -1
const char* dump_path();
int open_for_reading();              // the dump once more, -1: that cannot be
Header* header();                    // null while there is no dump
char* file_at(uint64_t offset);
bool grow_file(uint64_t size, DropCause* why);  // until it has at least `size` bytes
uint64_t file_ready();               // bytes that can be written
void grow_ahead(uint64_t tail);      // what grow_file would do soon
void touch_ahead(uint64_t tail);     // helper thread: the pages that will be written next
void give_back_memory(uint64_t tail);  // pages far behind `tail` leave this process
void truncate_file(uint64_t size);
void abandon_file();                 // in a forked child: the dump is the parent's
void detach_file();                  // what is written from now on goes nowhere; for handlers too
bool in_file(const void* address);

// dump/sigbus_guard.cpp

void survive_lost_room();            // from now on a dump that somebody cuts off ends no program
uint32_t write_schema(char* place, uint32_t room);

// dump/writer.cpp

constexpr uint32_t kChunkRoom = kChunkSize - sizeof(Chunk);

// The chunks that one writer fills. How far is kept in `used` and not read back from the file,
// which others can change.
struct Pen {
  Chunk* chunks[kTypes];
  uint32_t used[kTypes];
};
char* make_room(Pen& pen, Type type, uint32_t size);  // null: full or over, not counted
void advance(Pen& pen, Type type, uint32_t size);

extern std::mutex chunks_lock;
void begin_chunks();       // of a new dump
uint64_t chunks_tail();    // file offset behind the last chunk
void say_it_goes_on();     // up to this moment; for readers of a dump that is never ended
void close_chunks(uint32_t header_flags);  // no more of them; the dump is ended
void write_drops(bool last);

// dump/thread.cpp

struct alignas(64) Thread {
  Pen pen;
  Local* locals[kSlots];
  Thread* next_free;
  Thread* next;  // of all
};
// __thread and not thread_local: no check at every use whether it has been initialised.
extern __thread Thread* this_thread;
Thread* thread();  // made at first; null: no memory, or the thread is over; only while `inside`
bool prepare_threads();

// Around what uses files: the program does not expect that a push or a launch changes errno, or that
// a thread ends in it.
struct Unnoticed {
  const int value = errno;
  const Uncancelled uncancelled;
  ~Unnoticed() { errno = value; }
};

// A signal handler that interrupts the base on its thread must not enter it again: locks are held,
// records half written.
extern __thread bool inside;
struct Inside {
  const bool entered = !inside;
  Inside() { inside = true; }
  ~Inside() {
    if (entered) inside = false;
  }
};
extern std::mutex threads_lock;
void forget_threads();  // in a forked child: only the caller is left

// dump/names.cpp

extern std::mutex names_lock;
bool prepare_names();
void forget_names();  // for a new dump
void write_shared_drop(const Drop& drop);

// process/process_info.cpp

const char* library_version();
void read_identity();                 // from the environment, once
void describe_process(int forked_from);  // the meta records of every dump; 0: not forked

// process/helper_thread.cpp: the thread that does what need not be done at once

bool start_helper();
void wake_helper();           // to make room
bool finish_by_helper();      // false: there is none
void flush_now();             // on that thread only
void lock_helper();
void unlock_helper();
void forget_helper();         // in a forked child

// process/control_socket.cpp: the socket beside the dump, by which others look at the recording and end it; all of
// it on the helper thread

constexpr uint32_t kMostClients = 8;
void open_control();           // without a socket, if there can be none
bool control_is_open();
bool control_is_due();         // a request has been read and not been answered
uint64_t control_deadline();   // when the patience with some client ends
uint32_t watch_control(pollfd* watched);  // how many, at most kMostClients + 1
bool serve_control();          // what has been asked; true: to end the recording, answered at the end
void close_control(bool stopped);
void forget_control();         // in a forked child

}  // namespace flame
