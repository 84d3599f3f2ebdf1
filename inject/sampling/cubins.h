// Saves cubins beside the dump where PC samples need them, else keeps them until they do.
#pragma once
#include <cstdint>

#include "dump/dump.h"

namespace flame {

// The record of a module, and its cubin. Saved at once if `save`, else kept for save_kept_cubins.
void write_module(const Module& module, const char* cubin);
void save_kept_cubins();  // PC sampling has begun: what is kept is saved, and its records written

}  // namespace flame
