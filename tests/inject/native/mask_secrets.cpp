// Masks command lines: of standard input, each with its size before it (4 bytes), to standard output
// likewise.
#include <cstdint>
#include <cstdio>
#include <vector>

#include "process/secrets.h"

int main() {
  uint32_t size;
  while (fread(&size, sizeof size, 1, stdin) == 1) {
    std::vector<char> line(size), masked(size * 4 + 64);
    if (fread(line.data(), 1, size, stdin) != size) return 1;
    size = uint32_t(flame::mask_secrets(line.data(), size, masked.data(), masked.size()));
    fwrite(&size, sizeof size, 1, stdout);
    fwrite(masked.data(), 1, size, stdout);
  }
  return 0;
}
