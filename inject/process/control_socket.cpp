// Serves the socket beside the dump to all who may read the dump. A line each way; clients that do
// not keep to it are disconnected, and nobody waits for any.
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
#include "flame.h"
#include "process/control_protocol.h"
#include "system/clock.h"
#include "system/descriptor.h"
#include "system/settings.h"

namespace flame {
namespace {

constexpr size_t kLongestLine = 4096;
constexpr int kBacklog = 64;                    // clients that are not accepted yet
constexpr uint64_t kClientTimeout = 500000000;  // ns for the next request of a client

struct Client {
  Descriptor socket;
  size_t size = 0;     // of what has been received and not been answered
  uint64_t since = 0;  // accepted, or last answered
  bool wants_end = false;
};

Descriptor listener;
char socket_path[sizeof(Settings::directory) + 64];
dev_t device;  // of the file that stands for it
ino_t inode;
bool is_open;
bool accept_failed;  // somebody is there who cannot be let in now
Client clients[kMostClients];
char received[kMostClients][kLongestLine];
Reply reply;

void disconnect(Client& client) {
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
  if (!client.socket.ours() || !send_with(client, fd)) disconnect(client);
}

// clients

char* received_from(const Client& client) { return received[&client - clients]; }

char* end_of_line(const Client& client) {
  return static_cast<char*>(memchr(received_from(client), '\n', client.size));
}

bool is_due(const Client& client) {
  return client.socket.fd >= 0 && !client.wants_end && end_of_line(client);
}

// false: it has gone, or its line never ends.
bool read_more(Client& client) {
  if (client.size == kLongestLine) return false;
  const ssize_t size = recv(client.socket.fd, received_from(client) + client.size,
                            kLongestLine - client.size, MSG_DONTWAIT);
  if (size > 0) client.size += size_t(size);
  return size > 0 || (size < 0 && (errno == EAGAIN || errno == EINTR));
}

// One request at a time: a client that has many waits like the others.
void answer_first(Client& client) {
  char* const line = received_from(client);
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
  if (!client.socket.ours()) return disconnect(client);
  const bool goes_on = is_due(client) || read_more(client);
  if (is_due(client)) return answer_first(client);
  if (!goes_on || now() >= client.since + kClientTimeout) disconnect(client);
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
bool accept_client() {
  Client* client = free_client();
  if (!client || !listener.ours()) return false;
  const int fd = accept4(listener.fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  accept_failed = fd < 0 && errno != EAGAIN;
  if (fd < 0) return false;
  if (!is_trusted(fd)) {
    close(fd);
  } else if (client->socket.take(fd)) {
    client->since = now();
  }
  return true;
}

// the listening socket

void set_socket_path() {
  snprintf(socket_path, sizeof socket_path, "%s", dump_path());
  if (char* suffix = strrchr(socket_path, '.')) strcpy(suffix, ".sock");
}

// Through the folder's descriptor: it has been looked at, and a path may be longer than an address.
bool bind_in(int folder) {
  const char* name = strrchr(socket_path, '/') + 1;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  snprintf(address.sun_path, sizeof address.sun_path, "/proc/thread-self/fd/%d/%s", folder, name);
  // What the file will be is that of the socket, less the umask.
  if (fchmod(listener.fd, 0600) != 0) return false;
  if (bind(listener.fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return false;
  struct stat status;
  if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
    unlinkat(folder, name, 0);
    return false;
  }
  device = status.st_dev;
  inode = status.st_ino;
  return listen(listener.fd, kBacklog) == 0;
}

// Nothing that somebody else has put there.
void remove_socket() {
  struct stat status;
  if (!inode || lstat(socket_path, &status) != 0) return;
  if (status.st_dev == device && status.st_ino == inode) unlink(socket_path);
  inode = 0;
}

bool make_listener() {
  const int folder = open_folder();
  if (folder < 0) return false;
  remove_socket();
  const int type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
  const bool made = listener.take(socket(AF_UNIX, type, 0)) && bind_in(folder);
  close(folder);
  return made;
}

}  // namespace

void open_control() {
  set_socket_path();
  is_open = make_listener();
  if (is_open) return;
  log("no %s: %s", socket_path, strerror(errno));
  remove_socket();
  listener.close();
}

bool control_is_open() {
  // The program has closed it: one more try.
  if (is_open && !listener.ours()) open_control();
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
    if (client.socket.fd >= 0) first = std::min(first, client.since + kClientTimeout);
  return first;
}

uint32_t watch_control(pollfd* watched) {
  uint32_t count = 0;
  if (!accept_failed && free_client()) watched[count++] = {listener.fd, POLLIN, 0};
  for (Client& client : clients)
    if (client.socket.fd >= 0) watched[count++] = {client.socket.fd, POLLIN, 0};
  return count;
}

bool serve_control() {
  if (!is_open) return false;
  for (uint32_t each = 0; each < kMostClients && accept_client(); each++) {
  }
  bool ends = false;
  for (Client& client : clients) {
    serve(client);
    ends |= client.wants_end;
  }
  return ends;
}

void close_control(bool stopped) {
  remove_socket();
  is_open = false;
  listener.close();
  for (Client& client : clients) {
    reply.begin();
    if (stopped && client.wants_end) send_reply(client);
    disconnect(client);
  }
}

// The file and who has come are the parent's.
void forget_control() {
  is_open = false;
  inode = 0;
  listener.close();
  for (Client& client : clients) disconnect(client);
}

}  // namespace flame
