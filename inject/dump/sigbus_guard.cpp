// Handles the SIGBUS of a write to a dump that has lost its room: somebody has cut the file off, or
// a network file system has failed. It must not end the program.
#include "dump/sigbus_guard.h"

#include <csignal>

#include "dump/file.h"
#include "dump/recording_state.h"
#include "system/caller_guards.h"

namespace flame {
namespace {

struct sigaction previous;

// As if this handler were not there. A fault comes again by itself when its instruction is tried
// again; a signal that was sent does not.
void pass_on(int number, siginfo_t* info, void* context) {
  if (previous.sa_flags & SA_SIGINFO) return previous.sa_sigaction(number, info, context);
  if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN)
    return previous.sa_handler(number);
  const bool was_sent = info->si_code <= 0;
  sigaction(number, &previous, nullptr);
  if (was_sent) raise(number);
}

void on_bus_error(int number, siginfo_t* info, void* context) {
  if (info->si_code <= 0 || !in_file(info->si_addr)) return pass_on(number, info, context);
  CallerGuard caller;
  recording_state.store(kOver);
  detach_file();
}

}  // namespace

void install_sigbus_guard() {
  struct sigaction action = {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigemptyset(&action.sa_mask);
  if (sigaction(SIGBUS, nullptr, &previous) == 0) sigaction(SIGBUS, &action, nullptr);
}

}  // namespace flame
