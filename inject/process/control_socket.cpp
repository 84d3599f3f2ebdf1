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
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "dump/file.h"
#include "dump/recording_state.h"
#include "dump/writer.h"
#include "flame.h"
#include "process/helper_thread.h"
#include "process/process_info.h"
#include "system/clock.h"
#include "system/descriptor.h"
#include "system/settings.h"

namespace flame {
namespace {

constexpr uint32_t kProtocol = 1;
constexpr size_t kLongestLine = 4096;
constexpr size_t kLongestReply = 32 * 1024;  // a path of control characters takes six times its size
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

// replies

struct Reply {
  char text[kLongestReply];
  size_t size;

  void add(const char* format, ...) __attribute__((format(printf, 2, 3)));
  void add_quoted(std::string_view value);
};
Reply reply;

void Reply::add(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int more = vsnprintf(text + size, sizeof text - size, format, arguments);
  va_end(arguments);
  if (more > 0 && size + size_t(more) < sizeof text) size += size_t(more);
}

void Reply::add_quoted(std::string_view value) {
  add("\"");
  for (const char byte : value) {
    const bool plain = static_cast<unsigned char>(byte) >= 0x20 && byte != '"' && byte != '\\';
    add(plain ? "%c" : "\\u%04x", static_cast<unsigned char>(byte));
  }
  add("\"");
}

void begin_reply() {
  reply.size = 0;
  reply.add("{\"ok\":true");
}

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
  reply.add("}\n");
  client.since = now();
  if (!client.socket.ours() || !send_with(client, fd)) let_go(client);
}

void refuse(Client& client, const char* why) {
  reply.size = 0;
  reply.add("{\"ok\":false,\"error\":");
  reply.add_quoted(why);
  send_reply(client);
}

// requests

void answer_open(Client& client) {
  const int dump = open_for_reading();
  if (dump < 0) return refuse(client, "the dump cannot be opened again");
  begin_reply();
  reply.add(",\"protocol\":%u,\"pid\":%d,\"dump\":", kProtocol, getpid());
  reply.add_quoted(dump_path());
  reply.add(",\"library\":");
  reply.add_quoted(library_version());
  send_reply(client, dump);
  close(dump);
}

const char* state_name() {
  switch (life.load(std::memory_order_acquire)) {
    case kOn: return "recording";
    case kFullUp: return "full";
    default: return "ended";
  }
}

void answer_status(Client& client) {
  const char* truth[] = {"false", "true"};
  // First: this may be what finds that the dump has been cut off.
  const uint64_t lost = header()->dropped.load(std::memory_order_relaxed);
  begin_reply();
  reply.add(",\"pid\":%d,\"dump\":", getpid());
  reply.add_quoted(dump_path());
  reply.add(",\"state\":\"%s\",\"recording\":%s", state_name(), truth[life.load() == kOn]);
  reply.add(",\"bytes\":%llu", static_cast<unsigned long long>(chunks_tail()));
  reply.add(",\"dropped\":%llu", static_cast<unsigned long long>(lost));
  reply.add(",\"python\":%s,\"cupti\":%s", truth[reads_python()], truth[reads_cupti()]);
  send_reply(client);
}

void answer_flush(Client& client) {
  flush_now();
  begin_reply();
  send_reply(client);
}

void answer_stop(Client& client) { client.wants_end = true; }

// {"do":"pc","mode":MODE}
void answer_pc(Client& client, std::string_view mode) {
  if (life.load() != kOn) return refuse(client, "there is no more room for the recording");
  const SamplingAnswer answer = switch_sampling(mode);
  if (!answer.done) return refuse(client, answer.why);
  begin_reply();
  reply.add(",\"contexts\":%u", answer.contexts);
  send_reply(client);
}

struct Answer {
  std::string_view name;
  void (*give)(Client& client);
};
constexpr Answer kAnswers[] = {{"open", answer_open},
                               {"status", answer_status},
                               {"flush", answer_flush},
                               {"stop", answer_stop}};

struct Request {
  std::string_view name;  // empty: the line is something else
  std::string_view mode;
};

bool skip(std::string_view* text, std::string_view wanted) {
  const size_t start = text->find_first_not_of(" \t\r");
  if (start == std::string_view::npos || text->substr(start, wanted.size()) != wanted) return false;
  text->remove_prefix(start + wanted.size());
  return true;
}

// KEY:"VALUE", the key with its quotes
bool take_text(std::string_view* line, std::string_view key, std::string_view* value) {
  for (const std::string_view part : {key, std::string_view(":"), std::string_view("\"")})
    if (!skip(line, part)) return false;
  *value = line->substr(0, line->find('"'));
  line->remove_prefix(value->size());
  return skip(line, "\"");
}

// {"do":"NAME"}, or with a mode behind it
Request request_in(std::string_view line) {
  Request request;
  if (!skip(&line, "{") || !take_text(&line, "\"do\"", &request.name)) return {};
  if (skip(&line, ",") && !take_text(&line, "\"mode\"", &request.mode)) return {};
  const bool whole = skip(&line, "}") && line.find_first_not_of(" \t\r") == std::string_view::npos;
  return whole ? request : Request();
}

void answer(Client& client, const Request& request) {
  if (request.name == "pc" && !request.mode.empty()) return answer_pc(client, request.mode);
  for (const Answer& one : kAnswers)
    if (one.name == request.name && request.mode.empty()) return one.give(client);
  refuse(client, "not understood: open, status, flush, pc or stop, as {\"do\":\"open\"}");
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
  answer(client, request_in({first, size}));
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
    begin_reply();
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
