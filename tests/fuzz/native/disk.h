// Makes a real dump in a folder of its own, without the threads and signals of a recording.
#pragma once
#include "dump/dump.h"

namespace disk {

void begin();  // an empty dump, the first time in a new file; nothing is known of an earlier one

}  // namespace disk
