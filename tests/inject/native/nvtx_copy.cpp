// A library with an NVTX of its own, as every library that uses it has one.
#include <nvtx3/nvToolsExt.h>

extern "C" __attribute__((visibility("default"))) int push(const char* domain,
                                                            const char* message) {
  const nvtxDomainHandle_t handle = nvtxDomainCreateA(domain);
  nvtxEventAttributes_t event = {};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = nvtxDomainRegisterStringA(handle, message);
  return nvtxDomainRangePushEx(handle, &event);
}

extern "C" __attribute__((visibility("default"))) int pop(const char* domain) {
  return nvtxDomainRangePop(nvtxDomainCreateA(domain));
}
