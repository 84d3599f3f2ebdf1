// Answers requests of the control socket: for the dump's descriptor, how the recording is doing, a
// flush, PC samples, or its end.
#include "process/control_protocol.h"

#include <unistd.h>

#include <cstdarg>
#include <cstdio>

#include "dump/file.h"
#include "dump/recording_state.h"
#include "dump/writer.h"
#include "flame.h"
#include "process/helper_thread.h"
#include "process/process_info.h"

namespace flame {
namespace {

constexpr uint32_t kProtocol = 1;

// requests

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

// answers

Answer answer_open(Reply* reply) {
  Answer answer;
  answer.descriptor = open_for_reading();
  if (answer.descriptor < 0) return reply->refuse("the dump cannot be opened again"), answer;
  reply->begin();
  reply->add(",\"protocol\":%u,\"pid\":%d,\"dump\":", kProtocol, getpid());
  reply->add_quoted(dump_path());
  reply->add(",\"library\":");
  reply->add_quoted(library_version());
  return answer;
}

const char* state_name() {
  switch (recording_state.load(std::memory_order_acquire)) {
    case kOn: return "recording";
    case kOutOfRoom: return "full";
    default: return "ended";
  }
}

Answer answer_status(Reply* reply) {
  const char* json[] = {"false", "true"};
  // First: this may be what finds that the dump has been cut off.
  const uint64_t lost = header()->dropped.load(std::memory_order_relaxed);
  reply->begin();
  reply->add(",\"pid\":%d,\"dump\":", getpid());
  reply->add_quoted(dump_path());
  reply->add(",\"state\":\"%s\"", state_name());
  reply->add(",\"recording\":%s", json[recording_state.load() == kOn]);
  reply->add(",\"bytes\":%llu", static_cast<unsigned long long>(chunks_tail()));
  reply->add(",\"dropped\":%llu", static_cast<unsigned long long>(lost));
  reply->add(",\"python\":%s,\"cupti\":%s", json[reads_python()], json[reads_cupti()]);
  return {};
}

Answer answer_flush(Reply* reply) {
  if (!flush_now()) return reply->refuse("CUPTI has not handed over everything yet"), Answer();
  reply->begin();
  return {};
}

Answer answer_stop(Reply*) { return {-1, true}; }

void sample(std::string_view mode, Reply* reply) {
  if (recording_state.load() != kOn)
    return reply->refuse("there is no more room for the recording");
  const SamplingAnswer switched = switch_sampling(mode);
  if (!switched.done) return reply->refuse(switched.why);
  reply->begin();
  reply->add(",\"contexts\":%u", switched.contexts);
}

// {"do":"pc","mode":MODE}
Answer answer_pc(std::string_view mode, Reply* reply) {
  sample(mode, reply);
  return {};
}

struct Command {
  std::string_view name;
  Answer (*give)(Reply* reply);
};
constexpr Command kCommands[] = {{"open", answer_open},
                                 {"status", answer_status},
                                 {"flush", answer_flush},
                                 {"stop", answer_stop}};

}  // namespace

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

void Reply::begin() {
  size = 0;
  add("{\"ok\":true");
}

void Reply::refuse(const char* why) {
  size = 0;
  add("{\"ok\":false,\"error\":");
  add_quoted(why);
}

void Reply::end() { add("}\n"); }

Answer answer(std::string_view line, Reply* reply) {
  const Request request = request_in(line);
  if (request.name == "pc" && !request.mode.empty()) return answer_pc(request.mode, reply);
  for (const Command& command : kCommands)
    if (command.name == request.name && request.mode.empty()) return command.give(reply);
  reply->refuse("not understood: open, status, flush, pc or stop, as {\"do\":\"open\"}");
  return {};
}

}  // namespace flame
