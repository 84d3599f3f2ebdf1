// Holds a file descriptor in a process that is not ours. Programs close descriptors that are not
// theirs (daemons do), and the number may soon be that of another file: it is looked at before
// every use.
#pragma once
#include <sys/types.h>

namespace flame {

struct Descriptor {
  int fd = -1;
  dev_t device = 0;
  ino_t inode = 0;

  // Of `opened`, which may be none; under another number: once a program has closed its standard
  // output, what it writes there would go to us, and it has plans for the lowest free ones.
  bool take(int opened);
  bool is_same(int other) const;  // the same file
  bool ours() const { return fd >= 0 && is_same(fd); }
  void close();
};

}  // namespace flame
