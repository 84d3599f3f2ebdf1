// Feeds a fuzz target without a fuzzer: every file that is named, then COUNT blind mutations of
// them, made from SEED: "TARGET SEED COUNT FILE...". Where one is a fault it is written in hex.
#include <sanitizer/common_interface_defs.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

std::string tried;
std::mt19937_64 bits;

size_t below(size_t end) { return end ? bits() % end : 0; }

void write_tried() {
  fprintf(stderr, "the input, in hex:\n");
  for (const char byte : tried) fprintf(stderr, "%02x", static_cast<unsigned char>(byte));
  fprintf(stderr, "\n");
}

void run(const std::string& input) {
  tried = input;
  const std::vector<uint8_t> exact(input.begin(), input.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

void change(std::string* input, const std::vector<std::string>& corpus) {
  constexpr char kOdd[] = {0, 1, 7, 8, 127, -128, -1, '"', '\n'};
  const size_t at = below(input->size() + 1);
  switch (below(6)) {
    case 0: input->insert(at, 1 + below(8), kOdd[below(sizeof kOdd)]); break;
    case 1: input->erase(at, 1 + below(16)); break;
    case 2: input->insert(at, input->substr(below(input->size() + 1), below(32))); break;
    case 3: input->replace(at, std::string::npos, corpus[below(corpus.size())], 0, 512); break;
    default:
      if (at < input->size()) (*input)[at] = static_cast<char>(bits());
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) return fprintf(stderr, "usage: %s SEED COUNT FILE...\n", arguments[0]), 2;
  std::vector<std::string> corpus;
  for (int i = 3; i < count; i++) {
    std::ifstream file(arguments[i], std::ios::binary);
    if (!file) return fprintf(stderr, "%s cannot be read\n", arguments[i]), 2;
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  __sanitizer_set_death_callback(write_tried);
  for (const std::string& input : corpus) run(input);
  bits.seed(strtoull(arguments[1], nullptr, 10));
  for (uint64_t i = strtoull(arguments[2], nullptr, 10); i; i--) {
    std::string input = corpus[below(corpus.size())];
    for (size_t changes = 1 + below(6); changes; changes--) change(&input, corpus);
    run(input);
  }
  printf("%zu\n", corpus.size());
}
