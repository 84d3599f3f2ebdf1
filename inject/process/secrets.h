// Masks what is secret in a command line.
#pragma once
#include <cstddef>

namespace flame {

// The words of `line`, each with a zero behind it, into `to`, of which `room` bytes are left; how
// many there are now. What a password, a token or a key is goes by the name before it, or by its
// form; "***" stands for it.
size_t mask_secrets(const char* line, size_t size, char* to, size_t room);

}  // namespace flame
