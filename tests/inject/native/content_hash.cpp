// Prints the content hash of what it reads, line by line: of the first byte, the first two, and so on.
#include "system/content_hash.h"

#include <cinttypes>
#include <cstdio>
#include <vector>

int main() {
  std::vector<unsigned char> data;
  for (int byte; (byte = getchar()) != EOF;) data.push_back(static_cast<unsigned char>(byte));
  for (size_t size = 0; size <= data.size(); size++) {
    const std::vector<unsigned char> part(data.begin(), data.begin() + size);  // ends where it ends
    printf("%016" PRIx64 "\n", flame::content_hash(part.data(), size));
  }
}
