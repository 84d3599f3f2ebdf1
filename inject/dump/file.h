// Keeps the dump as a file that is mapped and grows ahead of its writers.
#pragma once
#include <cstdint>
#include <mutex>

#include "dump/dump.h"

namespace flame {

extern std::mutex file_lock;
bool open_file();
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
void guard_file();                   // from a SIGBUS of those who write to it
// What is written from now on goes nowhere, at `address` at least; for handlers too. false: there is
// no memory for it.
bool detach_file(const void* address);
bool in_file(const void* address);

}  // namespace flame
