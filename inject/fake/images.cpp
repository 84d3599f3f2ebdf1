// What modules are loaded from: their bytes, and the functions that a cubin has.
#include <elf.h>

#include <algorithm>
#include <cstring>

#include "fake/fake.h"

namespace fake {
namespace {

constexpr uint16_t kCuda = 190;        // EM_CUDA
constexpr unsigned char kEntry = 0x10;  // STO_CUDA_ENTRY: the host can launch it

bool begins(const void* image, const void* magic, size_t size) {
  return memcmp(image, magic, size) == 0;
}

size_t elf_size(const void* image) {  // the headers are the last thing in a cubin
  Elf64_Ehdr header;
  memcpy(&header, image, sizeof header);
  size_t sections = header.e_shoff + size_t(header.e_shnum) * header.e_shentsize;
  size_t segments = header.e_phoff + size_t(header.e_phnum) * header.e_phentsize;
  return std::max(sections, segments);
}

size_t fatbin_size(const void* image) {  // {u4 magic, u2 version, u2 header size, u8 size}
  uint16_t header;
  uint64_t rest;
  memcpy(&header, static_cast<const char*>(image) + 6, sizeof header);
  memcpy(&rest, static_cast<const char*>(image) + 8, sizeof rest);
  return header + rest;
}

template <class Type>
bool read_at(const std::string& image, uint64_t offset, Type* value) {
  if (offset > image.size() || sizeof *value > image.size() - offset) return false;
  memcpy(value, image.data() + offset, sizeof *value);
  return true;
}

std::string_view text_at(const std::string& image, uint64_t offset) {
  if (offset >= image.size()) return {};
  return {image.data() + offset, strnlen(image.data() + offset, image.size() - offset)};
}

bool read_section(const std::string& image, const Elf64_Ehdr& header, uint64_t number,
                  Elf64_Shdr* section) {
  return number < header.e_shnum &&
         read_at(image, header.e_shoff + number * header.e_shentsize, section);
}

void add_symbols(const std::string& image, const Elf64_Shdr& symbols, const Elf64_Shdr& names,
                 std::vector<ImageFunction>* found) {
  Elf64_Sym symbol;
  for (uint64_t at = 0; at + sizeof symbol <= symbols.sh_size; at += sizeof symbol) {
    if (!read_at(image, symbols.sh_offset + at, &symbol)) return;
    bool entry = ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_other & kEntry;
    std::string_view name = text_at(image, names.sh_offset + symbol.st_name);
    if (entry && !name.empty()) found->push_back({std::string(name), symbol.st_size});
  }
}

}  // namespace

std::string image_at(const void* image) {
  constexpr unsigned char kFatbin[] = {0x50, 0xed, 0x55, 0xba};
  constexpr unsigned char kWrapper[] = {0xb1, 0x43, 0x62, 0x46};
  if (begins(image, kWrapper, 4)) {  // {u4 magic, u4 version, data, …}
    memcpy(&image, static_cast<const char*>(image) + 8, sizeof image);
  }
  size_t size = begins(image, ELFMAG, SELFMAG) ? elf_size(image)
                : begins(image, kFatbin, 4)    ? fatbin_size(image)
                                               : strlen(static_cast<const char*>(image));
  return std::string(static_cast<const char*>(image), size);
}

bool is_cubin(const std::string& image) {
  Elf64_Ehdr header;
  return read_at(image, 0, &header) && begins(header.e_ident, ELFMAG, SELFMAG) &&
         header.e_machine == kCuda;
}

std::vector<ImageFunction> functions_in(const std::string& cubin) {
  std::vector<ImageFunction> found;
  Elf64_Ehdr header;
  Elf64_Shdr symbols, names;
  if (!read_at(cubin, 0, &header)) return found;
  for (uint64_t i = 0; read_section(cubin, header, i, &symbols); ++i) {
    if (symbols.sh_type == SHT_SYMTAB && read_section(cubin, header, symbols.sh_link, &names))
      add_symbols(cubin, symbols, names, &found);
  }
  return found;
}

}  // namespace fake
