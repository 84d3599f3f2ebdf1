// Checks that a text is JSON: what flame writes, others must be able to read.
#pragma once
#include <algorithm>
#include <cctype>
#include <string_view>

class Json {
 public:
  static bool is_valid(std::string_view text) {
    Json json{text};
    return json.value(0) && json.text_.empty();
  }

 private:
  static constexpr int kMaxNesting = 100;

  explicit Json(std::string_view text) : text_(text) {}

  bool take(std::string_view word) {
    if (text_.substr(0, word.size()) != word) return false;
    text_.remove_prefix(word.size());
    return true;
  }

  bool digits() {
    const size_t count = std::min(text_.find_first_not_of("0123456789"), text_.size());
    text_.remove_prefix(count);
    return count > 0;
  }

  bool number() {
    take("-");
    if (!digits()) return false;
    if (take(".") && !digits()) return false;
    if (!take("e")) return true;
    take("+") || take("-");
    return digits();
  }

  bool escape() {
    if (take("\"") || take("\\")) return true;
    if (!take("u") || text_.size() < 4) return false;
    for (int i = 0; i < 4; i++)
      if (!isxdigit(static_cast<unsigned char>(text_[size_t(i)]))) return false;
    text_.remove_prefix(4);
    return true;
  }

  bool string() {
    if (!take("\"")) return false;
    while (!text_.empty() && text_[0] != '"') {
      if (static_cast<unsigned char>(text_[0]) < 0x20) return false;
      const bool special = take("\\");
      if (special && !escape()) return false;
      if (!special) text_.remove_prefix(1);
    }
    return take("\"");
  }

  // What stands between brackets, with commas between `one`s.
  template <class One>
  bool list(std::string_view end, One one) {
    if (take(end)) return true;
    do
      if (!one()) return false;
    while (take(","));
    return take(end);
  }

  bool value(int nesting) {
    if (nesting > kMaxNesting) return false;
    const auto inner = [&] { return value(nesting + 1); };
    if (take("[")) return list("]", inner);
    if (take("{")) return list("}", [&] { return string() && take(":") && inner(); });
    if (take("null") || take("true") || take("false")) return true;
    return !text_.empty() && (text_[0] == '"' ? string() : number());
  }

  std::string_view text_;
};
