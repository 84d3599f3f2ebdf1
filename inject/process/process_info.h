// Describes the process in the meta records of its dump.
#pragma once

namespace flame {

const char* library_version();
void read_identity();                 // from the environment, once
void describe_process(int forked_from);  // the meta records of every dump; 0: not forked

}  // namespace flame
