// Computes XXH64 as its specification has it (github.com/Cyan4973/xxHash): several GB/s, because all
// of every cubin is read while the program waits.
#include "system/content_hash.h"

#include <cstring>

namespace flame {
namespace {

constexpr uint64_t kPrimes[] = {0, 0x9e3779b185ebca87, 0xc2b2ae3d27d4eb4f, 0x165667b19e3779f9,
                                0x85ebca77c2b2ae63, 0x27d4eb2f165667c5};
constexpr int kLanes = 4;
constexpr size_t kStripe = kLanes * sizeof(uint64_t);

template <class Number>
Number read(const unsigned char* at) {  // little-endian, as all machines of the library are
  Number value;
  memcpy(&value, at, sizeof value);
  return value;
}

uint64_t rotated(uint64_t value, int bits) { return value << bits | value >> (64 - bits); }

uint64_t round(uint64_t lane, uint64_t input) {
  return rotated(lane + input * kPrimes[2], 31) * kPrimes[1];
}

// The stripes that are whole, beginning at `*at`, which moves behind them.
uint64_t hash_stripes(const unsigned char** at, size_t stripes) {
  uint64_t lanes[kLanes] = {kPrimes[1] + kPrimes[2], kPrimes[2], 0, 0 - kPrimes[1]};
  for (; stripes; stripes--)
    for (uint64_t& lane : lanes) {
      lane = round(lane, read<uint64_t>(*at));
      *at += sizeof lane;
    }
  uint64_t hash = rotated(lanes[0], 1) + rotated(lanes[1], 7) + rotated(lanes[2], 12) +
                  rotated(lanes[3], 18);
  for (uint64_t lane : lanes) hash = (hash ^ round(0, lane)) * kPrimes[1] + kPrimes[4];
  return hash;
}

uint64_t hash_rest(uint64_t hash, const unsigned char* at, size_t size) {
  for (; size >= 8; at += 8, size -= 8)
    hash = rotated(hash ^ round(0, read<uint64_t>(at)), 27) * kPrimes[1] + kPrimes[4];
  for (; size >= 4; at += 4, size -= 4)
    hash = rotated(hash ^ read<uint32_t>(at) * kPrimes[1], 23) * kPrimes[2] + kPrimes[3];
  for (; size; at++, size--) hash = rotated(hash ^ *at * kPrimes[5], 11) * kPrimes[1];
  return hash;
}

}  // namespace

uint64_t content_hash(const void* data, size_t size) {
  auto at = static_cast<const unsigned char*>(data);
  const size_t stripes = size / kStripe;
  uint64_t hash = (stripes ? hash_stripes(&at, stripes) : kPrimes[5]) + size;
  hash = hash_rest(hash, at, size % kStripe);
  hash = (hash ^ hash >> 33) * kPrimes[2];
  hash = (hash ^ hash >> 29) * kPrimes[3];
  return hash ^ hash >> 32;
}

}  // namespace flame
