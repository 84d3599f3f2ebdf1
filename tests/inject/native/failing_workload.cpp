// Does some of everything that is recorded, and says what it did: the same whatever becomes of the
// recording. Ends with code 7.
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "../../../samples/cuda_driver.h"

namespace {

constexpr char kModule[] =
    "flame-fake 1\nkernel steady 2000\nsample steady 0 selected 11\nsample steady 16 wait 5\n";
constexpr int kLaunches = 300, kTexts = 300;
int ranges;  // in each of two processes

CudaDriver cuda;
CUcontext context;
CUfunction steady;

void set_up() {
  cuda = load_cuda();
  context = use_first_gpu(cuda);
}

void load(int number) {
  CUmodule module;
  const std::string image = kModule + ("# " + std::to_string(number) + "\n");
  check(cuda.cuModuleLoadData(&module, image.c_str()), "cuModuleLoadData");
  check(cuda.cuModuleGetFunction(&steady, module, "steady"), "steady");
}

void launch(CUstream stream) {
  check(cuda.cuLaunchKernel(steady, 4, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr), "launch");
}

void launch_all() {
  CUstream stream;
  check(cuda.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  for (int number = 0; number < kLaunches; number++) {
    if (number % 100 == 0) load(number);
    launch(stream);
  }
  check(cuda.cuStreamSynchronize(stream), "cuStreamSynchronize");
}

void replay() {
  CUstream stream;
  CUgraph made;
  CUgraphExec graph;
  check(cuda.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  check(cuda.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), "begin capture");
  launch(stream);
  check(cuda.cuStreamEndCapture(stream, &made), "end capture");
  check(cuda.cuGraphInstantiateWithFlags(&graph, made, 0), "instantiate");
  check(cuda.cuGraphLaunch(graph, stream), "replay");
  check(cuda.cuStreamSynchronize(stream), "cuStreamSynchronize");
}

void annotate(nvtxDomainHandle_t domain, int number) {
  const std::string text = "range " + std::to_string(number % kTexts) + ", of a longer name";
  nvtxEventAttributes_t event = {};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = nvtxDomainRegisterStringA(domain, text.c_str());
  nvtxDomainRangePushEx(domain, &event);
  const nvtxRangeId_t started = nvtxRangeStartA(text.c_str());
  nvtxRangeEnd(started);
  nvtxDomainRangePop(domain);
}

void annotate_all() {
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("domain");
  nvtxNameCategoryA(3, "category");
  for (int number = 0; number < ranges; number++) annotate(domain, number);
}

int in_child() {
  const pid_t child = fork();
  if (child == 0) {
    annotate_all();
    exit(9);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -status;
}

}  // namespace

int main(int, char** arguments) {
  ranges = atoi(arguments[1]);
  set_up();
  std::thread(annotate_all).join();
  launch_all();
  replay();
  printf("%d launches, child %d\n", kLaunches, in_child());
  return 7;
}
