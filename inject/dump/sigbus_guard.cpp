// Handles the SIGBUS of a write to a dump that has lost its room: somebody has cut the file off, or
// a network file system has failed. It must not end the program.
#include "dump/sigbus_guard.h"

#include <csignal>
#include <utility>

#include "dump/file.h"
#include "dump/recording_state.h"
#include "system/caller_guards.h"
#include "system/settings.h"

namespace flame {
namespace {

// The program may set a handler after us, as Python's faulthandler does. Then we come before that
// one, by another function of our own: a handler that hands a signal on to what it has replaced
// comes to what we had replaced there, and not to itself.
constexpr size_t kMostHandlers = 8;  // different ones of a program

struct sigaction replaced[kMostHandlers];  // never changed once it is in use
uint32_t used;

bool has_handler(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) ||
         (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

// As the kernel would call it.
void call(const struct sigaction& action, int number, siginfo_t* info, void* context) {
  if (action.sa_flags & SA_RESETHAND) signal(number, SIG_DFL);
  sigset_t blocked = action.sa_mask;
  if (action.sa_flags & SA_NODEFER) {
    sigset_t own;
    sigemptyset(&own);
    sigaddset(&own, number);
    pthread_sigmask(SIG_UNBLOCK, &own, nullptr);
  }
  pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  if (action.sa_flags & SA_SIGINFO) return action.sa_sigaction(number, info, context);
  action.sa_handler(number);
}

// As if ours were not there. A fault comes again by itself when its instruction is tried again; a
// signal that was sent does not.
void pass_on(const struct sigaction& action, int number, siginfo_t* info, void* context) {
  if (has_handler(action)) return call(action, number, info, context);
  const bool was_sent = info->si_code <= 0;
  if (was_sent && action.sa_handler == SIG_IGN) return;
  sigaction(number, &action, nullptr);
  if (was_sent) raise(number);
}

// Where no memory can be put in its place, it is a bus error as any other.
bool survives(const siginfo_t* info) {
  if (info->si_code <= 0 || !in_file(info->si_addr)) return false;
  CallerGuard caller;
  recording_state.store(kOver);
  return detach_file(info->si_addr);
}

template <size_t kPlace>
void on_bus_error(int number, siginfo_t* info, void* context) {
  if (!survives(info)) pass_on(replaced[kPlace], number, info, context);
}

using Handler = void (*)(int, siginfo_t*, void*);

template <size_t... kPlaces>
Handler handler_at(uint32_t place, std::index_sequence<kPlaces...>) {
  static constexpr Handler all[] = {on_bus_error<kPlaces>...};
  return all[place];
}

Handler handler_at(uint32_t place) {
  return handler_at(place, std::make_index_sequence<kMostHandlers>());
}

bool is_same(const struct sigaction& one, const struct sigaction& other) {
  return one.sa_flags == other.sa_flags && one.sa_handler == other.sa_handler;
}

bool is_ours(const struct sigaction& action) {
  for (uint32_t place = 0; place < used; place++)
    if (action.sa_sigaction == handler_at(place)) return true;
  return false;
}

// Of the handler that comes before `action`; kMostHandlers: there are too many.
uint32_t place_of(const struct sigaction& action) {
  for (uint32_t place = 0; place < used; place++)
    if (is_same(replaced[place], action)) return place;
  if (used == kMostHandlers) return kMostHandlers;
  replaced[used] = action;
  return used++;
}

}  // namespace

void keep_sigbus_guard() {
  struct sigaction current, before, action = {};
  if (sigaction(SIGBUS, nullptr, &current) != 0 || is_ours(current)) return;
  const uint32_t place = place_of(current);
  if (place == kMostHandlers) return log("too many handlers of SIGBUS: ours is not the first");
  action.sa_sigaction = handler_at(place);
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigemptyset(&action.sa_mask);
  // What the program has set in between stays, until the next look.
  if (sigaction(SIGBUS, &action, &before) == 0 && !is_same(before, current))
    sigaction(SIGBUS, &before, nullptr);
}

}  // namespace flame
