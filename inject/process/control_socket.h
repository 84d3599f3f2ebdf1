// Serves the socket beside the dump, by which others look at the recording and end it. All of it on
// the helper thread.
#pragma once
#include <poll.h>

#include <cstdint>

namespace flame {

constexpr uint32_t kMostClients = 8;
void open_control();           // without a socket, if there can be none
bool control_is_open();
bool control_is_due();         // a request has been read and not been answered
uint64_t control_deadline();   // when the first client is out of time
uint32_t watch_control(pollfd* watched);  // how many, at most kMostClients + 1
bool serve_control();          // what has been asked; true: to end the recording, answered at the end
void close_control(bool stopped);
void forget_control();         // in a forked child

}  // namespace flame
