// Clients of the control socket that send what they like, in pieces, and come and go: no request of
// one is answered to another, none gets more replies than it has sent lines, and one that keeps to
// the protocol is answered whatever the others do.
#include "process/control_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <vector>

#include "disk.h"
#include "dump/file.h"
#include "flame.h"
#include "input.h"
#include "json.h"

namespace {

constexpr size_t kMostOpen = 12;  // more than there are places

struct Client {
  int fd;
  size_t lines = 0, replies = 0;
  bool stops = false;
  std::string received{};
};

int connected() {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::string path = flame::dump_path();
  path.replace(path.rfind('.'), std::string::npos, ".sock");
  require(path.size() < sizeof address.sun_path, "the temporary folder has a short name");
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0 || !connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address)) return fd;
  close(fd);
  return -1;
}

void close_received(msghdr& message) {
  for (cmsghdr* each = CMSG_FIRSTHDR(&message); each; each = CMSG_NXTHDR(&message, each)) {
    int fd;
    memcpy(&fd, CMSG_DATA(each), sizeof fd);
    close(fd);
  }
}

void check_reply(Client& client, const std::string& line) {
  require(Json::is_valid(line), "a reply is JSON");
  require(++client.replies <= client.lines, "no client gets more replies than it has sent lines");
}

void receive(Client& client) {
  char data[4096], rights[256];
  for (;;) {
    iovec place = {data, sizeof data};
    msghdr message = {};
    message.msg_iov = &place;
    message.msg_iovlen = 1;
    message.msg_control = rights;
    message.msg_controllen = sizeof rights;
    const ssize_t size = recvmsg(client.fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (size <= 0) break;
    close_received(message);
    client.received.append(data, size_t(size));
  }
  for (size_t end; (end = client.received.find('\n')) != std::string::npos;) {
    check_reply(client, client.received.substr(0, end));
    client.received.erase(0, end + 1);
  }
}

void send_piece(Client& client, Input& in) {
  const std::string piece = in.bytes(in.byte() == 255 ? 6000 : 100);
  const ssize_t sent = send(client.fd, piece.data(), piece.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  for (ssize_t i = 0; i < sent; i++) client.lines += piece[size_t(i)] == '\n';
}

void step(Input& in, std::vector<Client>& clients) {
  const uint8_t what = in.below(8);
  const size_t which = clients.empty() ? 0 : in.byte() % clients.size();
  if (what == 0 && clients.size() < kMostOpen) {
    const int fd = connected();
    if (fd >= 0) clients.push_back(Client{fd});
  } else if (clients.empty()) {
    return;
  } else if (what == 1) {
    close(clients[which].fd);
    clients.erase(clients.begin() + std::ptrdiff_t(which));
  } else if (what < 6) {
    send_piece(clients[which], in);
  } else if (!flame::serve_control()) {
    for (Client& client : clients) receive(client);
  }
}

void ask_well() {
  constexpr char kQuestion[] = "{\"do\":\"status\"}\n";
  Client good{connected()};
  require(good.fd >= 0, "a client can come when the others have gone");
  good.lines = size_t(send(good.fd, kQuestion, sizeof kQuestion - 1, MSG_NOSIGNAL) > 0);
  for (int turn = 0; turn < 20 && !good.replies; turn++) {
    flame::serve_control();
    receive(good);
  }
  close(good.fd);
  require(good.replies == 1, "it is answered");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  disk::begin();
  if (!flame::control_is_open()) flame::open_control();
  Input in(data, size);
  std::vector<Client> clients;
  while (!in.empty()) step(in, clients);
  for (const Client& client : clients) close(client.fd);
  // Those that asked for the end wait for it: their places are free once it has come.
  const bool ends = flame::serve_control();
  if (ends) flame::close_control(true);
  if (ends) flame::open_control();
  for (int turn = 0; turn < 20; turn++) flame::serve_control();
  ask_well();
  return 0;
}
