// The socket beside the dump: who may read the dump asks here for its descriptor, how the recording
// is doing, for a flush, for PC samples, or for its end. A line of JSON each way; clients that do
// not keep to it are let go, and nobody waits for any.
#include "process/control_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "dump/file.h"
#include "process/control_protocol.h"
#include "system/clock.h"
#include "system/descriptor.h"
#include "system/settings.h"

namespace flame {
namespace {

constexpr size_t kLongestLine = 4096;
constexpr int kWaiting = 64;                 // clients that are not accepted yet
constexpr uint64_t kPatience = 500000000;    // ns for the next request of a client

struct Client {
  Descriptor socket;
  size_t size = 0;     // of what it has said and not been answered
  uint64_t since = 0;  // accepted, or last answered
  bool wants_end = false;
};

Descriptor door;
char door_path[sizeof(Settings::directory) + 64];
dev_t device;  // of the file that stands for it
ino_t inode;
bool is_open;
bool is_stuck;  // somebody is there who cannot be let in now
Client clients[kMostClients];
char said[kMostClients][kLongestLine];
Reply reply;

// replies

void let_go(Client& client) {
  client.socket.close();
  client.size = 0;
  client.wants_end = false;
}

// With `fd` goes what it is open on, -1: nothing.
bool send_with(Client& client, int fd) {
  iovec data = {reply.text, reply.size};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof fd)] = {};
  if (fd >= 0) {
    message.msg_control = room;
    message.msg_controllen = sizeof room;
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  }
  const ssize_t sent = sendmsg(client.socket.fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  return sent == ssize_t(reply.size);
}

// Whose reply finds no room does not read any.
void send_reply(Client& client, int fd = -1) {
  reply.end();
  client.since = now();
  if (!client.socket.ours() || !send_with(client, fd)) let_go(client);
}

// clients

char* said_by(const Client& client) { return said[&client - clients]; }

char* end_of_line(const Client& client) {
  return static_cast<char*>(memchr(said_by(client), '\n', client.size));
}

bool is_due(const Client& client) {
  return client.socket.fd >= 0 && !client.wants_end && end_of_line(client);
}

// false: it has gone, or its line never ends.
bool read_more(Client& client) {
  if (client.size == kLongestLine) return false;
  const ssize_t size = recv(client.socket.fd, said_by(client) + client.size,
                            kLongestLine - client.size, MSG_DONTWAIT);
  if (size > 0) client.size += size_t(size);
  return size > 0 || (size < 0 && (errno == EAGAIN || errno == EINTR));
}

// One request at a time: a client that has many waits like the others.
void answer_first(Client& client) {
  char* const line = said_by(client);
  const auto size = size_t(end_of_line(client) - line);
  static char first[kLongestLine];
  memcpy(first, line, size);
  client.size -= size + 1;
  memmove(line, line + size + 1, client.size);
  const Answer given = answer({first, size}, &reply);
  client.wants_end = given.ends_recording;
  if (!client.wants_end) send_reply(client, given.descriptor);
  if (given.descriptor >= 0) close(given.descriptor);
}

void serve(Client& client) {
  if (client.socket.fd < 0 || client.wants_end) return;
  if (!client.socket.ours()) return let_go(client);
  const bool goes_on = is_due(client) || read_more(client);
  if (is_due(client)) return answer_first(client);
  if (!goes_on || now() >= client.since + kPatience) let_go(client);
}

Client* free_client() {
  for (Client& client : clients)
    if (client.socket.fd < 0) return &client;
  return nullptr;
}

bool is_trusted(int fd) {
  ucred peer;
  socklen_t size = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == geteuid() || peer.uid == 0;
}

// false: there is nobody, or no place.
bool let_in() {
  Client* client = free_client();
  if (!client || !door.ours()) return false;
  const int fd = accept4(door.fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  is_stuck = fd < 0 && errno != EAGAIN;
  if (fd < 0) return false;
  if (!is_trusted(fd)) {
    close(fd);
  } else if (client->socket.take(fd)) {
    client->since = now();
  }
  return true;
}

// the door

void name_door() {
  snprintf(door_path, sizeof door_path, "%s", dump_path());
  if (char* suffix = strrchr(door_path, '.')) strcpy(suffix, ".sock");
}

// Through the folder's descriptor: it has been looked at, and a path may be longer than an address.
bool bind_in(int folder) {
  const char* name = strrchr(door_path, '/') + 1;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  snprintf(address.sun_path, sizeof address.sun_path, "/proc/thread-self/fd/%d/%s", folder, name);
  // What the file will be is that of the socket, less the umask.
  if (fchmod(door.fd, 0600) != 0) return false;
  if (bind(door.fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return false;
  struct stat about;
  if (fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) != 0) return false;
  device = about.st_dev;
  inode = about.st_ino;
  return listen(door.fd, kWaiting) == 0;
}

// Nothing that somebody else has put there.
void remove_door() {
  struct stat about;
  if (!inode || lstat(door_path, &about) != 0) return;
  if (about.st_dev == device && about.st_ino == inode) unlink(door_path);
  inode = 0;
}

bool make_door() {
  const int folder = open_folder();
  if (folder < 0) return false;
  remove_door();
  const int type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
  const bool made = door.take(socket(AF_UNIX, type, 0)) && bind_in(folder);
  close(folder);
  return made;
}

}  // namespace

void open_control() {
  name_door();
  is_open = make_door();
  if (is_open) return;
  log("no %s: %s", door_path, strerror(errno));
  remove_door();
  door.close();
}

bool control_is_open() {
  // The program has closed it: one more try.
  if (is_open && !door.ours()) open_control();
  return is_open;
}

bool control_is_due() {
  for (const Client& client : clients)
    if (is_due(client)) return true;
  return false;
}

uint64_t control_deadline() {
  uint64_t first = UINT64_MAX;
  for (const Client& client : clients)
    if (client.socket.fd >= 0) first = std::min(first, client.since + kPatience);
  return first;
}

uint32_t watch_control(pollfd* watched) {
  uint32_t count = 0;
  if (!is_stuck && free_client()) watched[count++] = {door.fd, POLLIN, 0};
  for (Client& client : clients)
    if (client.socket.fd >= 0) watched[count++] = {client.socket.fd, POLLIN, 0};
  return count;
}

bool serve_control() {
  if (!is_open) return false;
  for (uint32_t each = 0; each < kMostClients && let_in(); each++) {
  }
  bool ends = false;
  for (Client& client : clients) {
    serve(client);
    ends |= client.wants_end;
  }
  return ends;
}

void close_control(bool stopped) {
  remove_door();
  is_open = false;
  door.close();
  for (Client& client : clients) {
    reply.begin();
    if (stopped && client.wants_end) send_reply(client);
    let_go(client);
  }
}

// The file and who has come are the parent's.
void forget_control() {
  is_open = false;
  inode = 0;
  door.close();
  for (Client& client : clients) let_go(client);
}

}  // namespace flame
