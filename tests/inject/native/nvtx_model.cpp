// Pushes and pops as it is told on stdin, and says after each what a launch would be recorded with:
// "PID RETURNED PATH", the path being a node of the process's dump. It is linked with the library's
// sources, since no program can ask the library for the path.
//   push DOMAIN TEXT | pop DOMAIN | fork (the child goes on, the parent waits for it)
#include <cstdint>

extern "C" int InitializeInjectionNvtx2(const void* (*get_table)(uint32_t));
#define NVTX_STATIC_INJECTION_IMPL
int (*InitializeInjectionNvtx2_fnptr)(const void* (*)(uint32_t)) = InitializeInjectionNvtx2;

#include <nvtx3/nvToolsExt.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace flame {
uint32_t nvtx_path();
bool recording();
}  // namespace flame

namespace {

// "0" is the default domain.
nvtxDomainHandle_t domain_of(const char* name) {
  return strcmp(name, "0") ? nvtxDomainCreateA(name) : nullptr;
}

int push(const char* domain, const char* text) {
  nvtxEventAttributes_t event = {};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = text;
  return nvtxDomainRangePushEx(domain_of(domain), &event);
}

int go_on_in_child() {
  const pid_t child = fork();
  if (child == 0) return 0;
  int status = 0;
  waitpid(child, &status, 0);
  exit(WEXITSTATUS(status));
}

}  // namespace

int main() {
  char line[256], what[16], domain[64], text[64];
  setvbuf(stdout, nullptr, _IOLBF, 0);  // or a child would print again what its parent has
  setvbuf(stdin, nullptr, _IONBF, 0);
  while (fgets(line, sizeof line, stdin)) {
    int returned = 0;
    sscanf(line, "%15s %63s %63s", what, domain, text);
    if (!strcmp(what, "push")) returned = push(domain, text);
    if (!strcmp(what, "pop")) returned = nvtxDomainRangePop(domain_of(domain));
    if (!strcmp(what, "fork")) returned = go_on_in_child();
    printf("%d %d %u\n", getpid(), returned, flame::nvtx_path());
  }
}
