// Keeps the program alive when somebody cuts the dump off.
#pragma once

namespace flame {

void install_sigbus_guard();  // from now on a dump that somebody cuts off ends no program

}  // namespace flame
