// Takes values from the bytes that a fuzzer makes, from the first to the last: what is missing at
// the end is zero, so that every input is one.
#ifndef FUZZ_INPUT_H
#define FUZZ_INPUT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  const uint8_t* at;
  size_t left;
} Input;

static inline void take(Input* in, void* to, size_t size) {
  const size_t there = in->left < size ? in->left : size;
  memset(to, 0, size);
  if (there) memcpy(to, in->at, there);
  in->at += there;
  in->left -= there;
}

static inline uint8_t take_byte(Input* in) {
  uint8_t byte;
  take(in, &byte, 1);
  return byte;
}

static inline uint32_t below(Input* in, uint32_t end) { return take_byte(in) % end; }

// A number of any size: mostly small, now and then what overflows.
static inline int64_t take_number(Input* in) {
  const uint8_t kind = take_byte(in);
  int64_t number = 0;
  if (kind < 230) return kind & 1 ? -(int64_t)(kind >> 1) : kind >> 1;
  switch (kind % 6) {
    case 0: return INT64_MAX - take_byte(in);
    case 1: return INT64_MIN + take_byte(in);
    case 2: return (int64_t)INT32_MAX + (int8_t)take_byte(in);
    case 3: return ((int64_t)1 << 32) + (int8_t)take_byte(in);
    case 4: return (int64_t)((uint64_t)1 << take_byte(in) % 64);
    default: take(in, &number, sizeof number); return number;
  }
}

static inline void require(int true_always, const char* what) {
  if (true_always) return;
  fprintf(stderr, "not true: %s\n", what);
  abort();
}

// Memory of exactly so many values: a sanitizer sees every byte too many.
static inline void* memory(int64_t count, size_t size) {
  void* made = malloc((size_t)count * size);
  require(made || !count, "there is memory");
  return made;
}

static inline void* copied(const void* values, int64_t count, size_t size) {
  void* copy = memory(count, size);
  if (count) memcpy(copy, values, (size_t)count * size);
  return copy;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

#endif
