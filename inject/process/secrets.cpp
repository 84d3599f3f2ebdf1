// Masks what is secret in a command line. flame/core/names/secrets.py does the same, and
// tests/support/secrets.json says what comes of both.
#include "process/secrets.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace flame {
namespace {

using View = std::string_view;

constexpr View kMask = "***";
constexpr View kSpaces = " \t\r\n";
constexpr View kQuotes = "\"'";
constexpr View kEnds = " \t\r\n\"'`&,;|<>)]}";  // of a value within other text
constexpr size_t kLeastToken = 16;  // letters and digits in a row
constexpr View kTokens[] = {"hf_",  "sk-",         "ghp_",   "gho_",  "ghs_",  "ghu_",   "ghr_",
                            "AKIA", "github_pat_", "glpat-", "xoxb-", "xoxp-", "nvapi-", "AIza"};
constexpr View kSecretWords[] = {"SECRET", "SECRETS", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS",
                                 "APIKEY"};
constexpr View kModelTokens[] = {"PAD", "EOS", "BOS", "UNK", "SEP", "CLS", "MASK"};

bool contains(View set, char byte) { return set.find(byte) != View::npos; }

template <size_t kSize>
bool is_among(const View (&all)[kSize], View value) {
  return std::find(std::begin(all), std::end(all), value) != std::end(all);
}

bool is_lower(char byte) { return byte >= 'a' && byte <= 'z'; }
bool is_upper(char byte) { return byte >= 'A' && byte <= 'Z'; }
bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }
char upper(char byte) { return is_lower(byte) ? char(byte - 'a' + 'A') : byte; }
bool is_name(char byte) {
  return is_lower(byte) || is_upper(byte) || is_digit(byte) || contains("_.-", byte);
}

bool begins_with(View text, View start) { return text.substr(0, start.size()) == start; }
bool ends_with(View text, View end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// names

// The words of a name, in capitals: of api_key, api-key and apiKey they are the same.
class Words {
 public:
  explicit Words(View name) : rest_(name) {}

  bool next() {
    while (!rest_.empty() && contains("_.-", rest_[0])) rest_.remove_prefix(1);
    size_ = 0;
    for (char before = 0; !rest_.empty() && !contains("_.-", rest_[0]); rest_.remove_prefix(1)) {
      const bool begins = is_upper(rest_[0]) && (is_lower(before) || is_digit(before));
      if (size_ && begins) break;
      before = rest_[0];
      if (size_ < sizeof word_) word_[size_++] = upper(before);
    }
    return size_ > 0;
  }

  View word() const { return {word_, size_}; }

 private:
  View rest_;
  char word_[64];
  size_t size_ = 0;
};

bool is_secret_name(View name) {
  Words words(name);
  bool is_key = false, is_token = false, is_models = false;
  for (size_t count = 0; words.next(); count++) {
    const View word = words.word();
    const bool is_password = word.find("PASSWORD") != View::npos ||
                             word.find("PASSWD") != View::npos;
    if (is_password || is_among(kSecretWords, word)) return true;
    is_key = count && word == "KEY";
    is_token = ends_with(word, "TOKEN") && !is_models;
    is_models = is_among(kModelTokens, word);
  }
  return is_key || is_token;
}

bool equals(View name, View capitals) {
  return std::equal(name.begin(), name.end(), capitals.begin(), capitals.end(),
                    [](char one, char other) { return upper(one) == other; });
}

bool is_authorization(View name) {
  return equals(name, "AUTHORIZATION") || equals(name, "PROXY-AUTHORIZATION");
}

// An option, or what stands before a token: its value may be the next word.
bool takes_next(View name) {
  return equals(name, "BEARER") || (name[0] == '-' && is_secret_name(name));
}

bool is_random(View text) {
  size_t size = 0;
  for (const char byte : text) {
    size = contains("_.-", byte) ? 0 : size + 1;
    if (size == kLeastToken) return true;
  }
  return false;
}

bool is_token(View text) {
  for (const View prefix : kTokens)
    if (begins_with(text, prefix)) return is_random(text.substr(prefix.size()));
  return false;
}

// values

struct Span {
  size_t begin, end;
  bool empty() const { return begin >= end; }
};

size_t skip(View word, View set, size_t at) {
  return std::min(word.find_first_not_of(set, at), word.size());
}

size_t until(View word, View set, size_t at) {
  return std::min(word.find_first_of(set, at), word.size());
}

// From `at` on, in quotes or up to what ends it.
Span value_at(View word, size_t at, View ends) {
  if (at < word.size() && contains(kQuotes, word[at]))
    return {at + 1, until(word, word.substr(at, 1), at + 1)};
  return {at, until(word, ends, at)};
}

// Behind NAME=, NAME: or NAME' : where the word begins with the name, all that follows.
Span assigned(View word, Span name) {
  const View text = word.substr(name.begin, name.end - name.begin);
  const bool is_header = is_authorization(text);
  if (!is_header && !is_secret_name(text)) return {0, 0};
  size_t at = name.end;
  at += at < word.size() && contains(kQuotes, word[at]);
  at += at < word.size() && word[at] == ']';
  const size_t sign = skip(word, kSpaces, at);
  if (sign >= word.size() || !contains("=:", word[sign])) return {0, 0};
  if (word.substr(sign, 2) == "==" || word.substr(sign, 3) == "://") return {0, 0};
  const bool is_all = !is_header && name.begin == 0 && sign == name.end;
  return value_at(word, skip(word, kSpaces, sign + 1), is_all ? "" : is_header ? kQuotes : kEnds);
}

// Behind an option within a longer text, as in `sh -c`.
Span following(View word, Span name) {
  const size_t at = skip(word, kSpaces, name.end);
  if (at == name.end || at >= word.size() || word[at] == '-') return {0, 0};
  if (!takes_next(word.substr(name.begin, name.end - name.begin))) return {0, 0};
  return value_at(word, at, kEnds);
}

// The password in USER:PASSWORD@HOST, which begins at `at`.
Span password_at(View word, size_t at) {
  const size_t end = until(word, " \t\r\n\"'/?#", at);
  const size_t host = word.substr(0, end).rfind('@'), colon = word.find(':', at);
  if (host == View::npos || host < at || colon >= host) return {0, 0};
  return {colon + 1, host};
}

// output

struct Out {
  char* place;
  size_t room, size = 0;

  void add(View text) {
    const size_t most = std::min(text.size(), room - size);
    memcpy(place + size, text.data(), most);
    size += most;
  }
};

struct Masked {
  Span secret;
  size_t end;  // of what has been looked at
};

Masked look_at_name(View word, size_t at) {
  Span name{at, at};
  while (name.end < word.size() && is_name(word[name.end])) name.end++;
  for (const Span value : {assigned(word, name), following(word, name)})
    if (!value.empty()) return {value, value.end};
  if (is_token(word.substr(at, name.end - at))) return {name, name.end};
  return {{0, 0}, name.end};
}

Masked look_at(View word, size_t at) {
  if (is_name(word[at])) return look_at_name(word, at);
  if (word.substr(at, 3) != "://") return {{0, 0}, at + 1};
  const Span password = password_at(word, at + 3);
  return {password, password.empty() ? at + 3 : password.end};
}

void mask_word(View word, Out* out) {
  for (size_t at = 0; at < word.size();) {
    const Masked found = look_at(word, at);
    if (found.secret.empty()) {
      out->add(word.substr(at, found.end - at));
    } else {
      out->add(word.substr(at, found.secret.begin - at));
      out->add(kMask);
    }
    at = found.end;
  }
}

bool announces_next(View word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), is_name) && takes_next(word);
}

}  // namespace

size_t mask_secrets(const char* line, size_t size, char* to, size_t room) {
  Out out{to, room};
  bool is_secret = false;  // what the word before says of this one
  for (View rest(line, size); !rest.empty();) {
    const View word = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    if (is_secret && !word.empty() && word[0] != '-') {
      out.add(kMask);
    } else {
      mask_word(word, &out);
    }
    is_secret = announces_next(word);
    out.add(View("", 1));
  }
  return out.size;
}

}  // namespace flame
