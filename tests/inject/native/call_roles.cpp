// Says what driver calls are to the recording: the number of the role of each name on standard input.
#include <iostream>
#include <string>

#include "cupti/call_roles.h"

int main() {
  for (std::string name; std::getline(std::cin, name);) std::cout << +flame::role_of(name.c_str()) << '\n';
  return 0;
}
