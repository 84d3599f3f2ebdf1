// Gives ids to texts, frames and stacks of the dump.
#pragma once
#include <mutex>

#include "dump/dump.h"

namespace flame {

extern std::mutex names_lock;
bool prepare_names();
void forget_names();  // for a new dump
void write_shared_drop(const Drop& drop);

}  // namespace flame
