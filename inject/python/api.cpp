// Calls CPython's public C API.
#include "python/api.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstring>

namespace flame::python {
namespace {

template <class Function>
bool find(Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
  return function != nullptr;
}

void find_frames(Api* api) {
  find(api->thread_frame, "PyThreadState_GetFrame");
  find(api->frame_back, "PyFrame_GetBack");
  find(api->frame_code, "PyFrame_GetCode");
  find(api->frame_line, "PyFrame_GetLineNumber");
  find(api->frame_lasti, "PyFrame_GetLasti");
  find(api->attribute, "PyObject_GetAttrString");
  find(api->as_utf8, "PyUnicode_AsUTF8AndSize");
  find(api->release, "Py_DecRef");
  find(api->disable_gc, "PyGC_Disable");
  find(api->enable_gc, "PyGC_Enable");
  find(api->take_error, "PyErr_Fetch");
  find(api->put_error, "PyErr_Restore");
}

void read_version(Api* api) {
  const char* version = api->version();
  sscanf(version, "%d.%d.%d", &api->major, &api->minor, &api->micro);
  api->free_threaded = strstr(version, "free-threading") != nullptr;
  api->traced_references = dlsym(RTLD_DEFAULT, "_Py_PrintReferences") != nullptr;
}

}  // namespace

bool load_api(Api* api) {
  if (!find(api->initialized, "Py_IsInitialized") || !api->initialized()) return false;
  if (!find(api->version, "Py_GetVersion")) return false;
  if (!find(api->own_thread, "PyGILState_GetThisThreadState")) return false;
  find(api->running_thread, "PyThreadState_GetUnchecked") ||
      find(api->running_thread, "_PyThreadState_UncheckedGet");
  find(api->add_pending_call, "Py_AddPendingCall");
  find(api->runtime, "_PyRuntime");
  find_frames(api);
  read_version(api);
  return true;
}

bool walks_by_api(const Api& api) {
  return api.running_thread && api.thread_frame && api.frame_back && api.frame_code &&
         api.frame_line && api.attribute && api.as_utf8 && api.release && api.take_error &&
         api.put_error;
}

// Not PyGILState_Check: that says yes to everybody once there are subinterpreters.
bool holds_gil(const Api& api, ThreadState* own) {
  return api.running_thread && api.running_thread() == own;
}

Quiet::Quiet(const Api& api) : api_(api) {
  const bool alone = !api_.free_threaded;  // else another thread may be switching it too
  if (alone && api_.disable_gc && api_.enable_gc) collected_ = api_.disable_gc() != 0;
  api_.take_error(&error_[0], &error_[1], &error_[2]);
}

Quiet::~Quiet() {
  api_.put_error(error_[0], error_[1], error_[2]);
  if (collected_) api_.enable_gc();
}

uint32_t walk_by_api(const Api& api, ThreadState* own, ApiFrame* frames, bool* cut) {
  uint32_t depth = 0;
  Object* frame = api.thread_frame(own);
  while (frame && depth < kMaxDepth) {
    Object* code = api.frame_code(frame);
    const int lasti = api.frame_lasti ? api.frame_lasti(frame) : -1;
    frames[depth++] = ApiFrame{code, api.frame_line(frame), lasti};
    api.release(code);
    Object* caller = api.frame_back(frame);
    api.release(frame);
    frame = caller;
  }
  *cut = frame != nullptr;
  if (frame) api.release(frame);
  return depth;
}

Attribute::Attribute(const Api& api, Object* owner, const char* name)
    : api_(api), value_(api.attribute(owner, name)) {
  intptr_t size = 0;
  const char* text = value_ ? api_.as_utf8(value_, &size) : nullptr;
  readable_ = text != nullptr;
  if (readable_) text_ = std::string_view(text, static_cast<size_t>(size));
}

Attribute::~Attribute() {
  if (!readable_) {  // a name that is not UTF-8 leaves an exception behind
    Object* error[3];
    api_.take_error(&error[0], &error[1], &error[2]);
    for (Object* each : error)
      if (each) api_.release(each);
  }
  if (value_) api_.release(value_);
}

}  // namespace flame::python
