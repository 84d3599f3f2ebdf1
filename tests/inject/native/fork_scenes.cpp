// Signal handlers that fork and record at the worst moments: while the library has a lock.
#include <pthread.h>

#include <csignal>

#include "scenes.h"

namespace {

// The child records, and so does its own child; one that hangs ends the scene.
void fork_and_record(int) {
  put_launch(1, 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    put_launch(7, 0);
    _exit(0);
  }
  wait_for(child);
}

void handle_signal() {
  struct sigaction action = {};
  action.sa_handler = fork_and_record;
  sigaction(SIGUSR1, &action, nullptr);
  alarm(20);
}

void raise_once() {
  in_fallocate = nullptr;
  raise(SIGUSR1);
}

int signal_in_start() {
  handle_signal();
  in_fallocate = raise_once;
  if (!start()) return 1;
  put_all(0, 10);
  return 0;
}

// A forked child makes its dump when it first records.
int signal_in_start_of_child() {
  put_all(0, 10);
  const pid_t child = fork();
  if (child == 0) {
    handle_signal();
    in_fallocate = raise_once;
    put_all(2, 10);
    exit(0);
  }
  wait_for(child);
  return 0;
}

// What a program does before it forks comes after what was registered later: all locks are held.
int signal_in_fork() {
  static bool now_raise;
  pthread_atfork([] { if (now_raise) now_raise = false, raise(SIGUSR1); }, nullptr, nullptr);
  if (!start()) return 1;
  handle_signal();
  put_all(0, 10);
  now_raise = true;
  const pid_t child = fork();
  if (child == 0) {
    put_all(2, 10);
    exit(0);
  }
  wait_for(child);
  put_all(3, 5);
  return 0;
}

}  // namespace

const Scenes scenes_before_start = {
    {"signal_in_start", signal_in_start},
    {"signal_in_fork", signal_in_fork},
};

const Scenes fork_scenes = {
    {"signal_in_start_of_child", signal_in_start_of_child},
};
