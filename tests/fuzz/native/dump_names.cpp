// Names of any bytes and lengths, of kernels, functions, domains and notes: each can be read back
// from the dump under the id that was given for it, and the file is well-formed.
#include <map>
#include <vector>

#include "cupti/kernel_names.h"
#include "disk.h"
#include "dump/file.h"
#include "dump/recording_state.h"
#include "dump/writer.h"
#include "flame.h"
#include "input.h"

namespace {

using namespace flame;

std::map<uint32_t, std::string> texts;

void read_texts(const char* from, uint32_t size) {
  for (uint32_t at = 0; at < size;) {
    uint32_t id, length;
    require(at + 8 <= size, "a text has a head");
    memcpy(&id, from + at, 4);
    memcpy(&length, from + at + 4, 4);
    require(length <= kMaxText && at + 8 + length <= size, "a text is whole");
    require(texts.emplace(id, std::string(from + at + 8, length)).second, "no id comes twice");
    at += (8 + length + 7) & ~7u;
  }
}

void read_dump() {
  texts.clear();
  for (uint64_t at = kHeaderSize; at < chunks_tail(); at += kChunkSize) {
    const auto& chunk = *reinterpret_cast<const Chunk*>(file_at(at));
    require(chunk.magic == kChunkMagic && chunk.size == kChunkSize, "a chunk has a head");
    require(chunk.type && chunk.type < kTypes, "it has a type");
    const uint32_t size = chunk.committed;
    require(size <= kChunkSize - sizeof(Chunk), "its records are in it");
    require(!chunk.record_size || size % chunk.record_size == 0, "they are whole");
    if (chunk.type == kText) read_texts(reinterpret_cast<const char*>(&chunk + 1), size);
  }
}

struct Scene {
  Input in;
  std::map<uint32_t, std::string> expected;
  KernelNames kernels;
  std::vector<Block> places;  // of kernel names; others come to lie where they were

  std::string value() { return in.bytes(in.byte() == 255 ? 65535 : 200); }

  void expect(uint32_t id, std::string value) {
    if (value.empty()) return require(id == 0, "nothing has no id");
    if (!id) return require(recording_state.load() != kOn, "while there is room there are ids");
    const auto found = expected.emplace(id, value).first;
    require(found->second == value, "an id stands for one text");
  }

  void add_kernel() {
    const std::string name = in.bytes(100);
    if (places.empty() || in.flag()) {
      places.push_back(c_string(name));
    } else {  // another module, at the same address
      Block& place = places[in.byte() % places.size()];
      const size_t size = std::min(name.size(), place.size() - 1);
      memcpy(place.data(), name.data(), size);
      place.data()[size] = 0;
    }
    Block& place = places[in.byte() % places.size()];
    expect(kernels.text_of(place.data()), place.data());
  }

  void step() {
    const std::string made = value();
    const Block text(made);
    const std::string_view view(text.data(), text.size());
    switch (in.below(8)) {
      case 0: frame(view, in.bytes(), in.take<uint32_t>()); break;
      case 1: node(in.byte(), in.byte(), kPythonNode, in.below(2)); break;
      case 2: range_name(in.byte(), in.byte(), in.byte()); break;
      case 3: name(NameKind(in.below(9)), in.byte(), in.byte(), view); break;
      case 4: meta(in.bytes(), view); break;
      case 5: note(view); break;
      case 6: add_kernel(); break;
      default: {
        const uint32_t id = flame::text(view);
        if (made.size() <= kMaxText) expect(id, made);
      }
    }
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  disk::begin();
  Scene scene{{data, size}, {}, {}, {}};
  while (!scene.in.empty()) scene.step();
  read_dump();
  for (const auto& [id, value] : scene.expected) require(texts[id] == value, "it is in the dump");
  return 0;
}
