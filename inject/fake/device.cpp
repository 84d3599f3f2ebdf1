// The simulated GPU: work of a stream runs in its order, streams run side by side.
#include <algorithm>

#include "fake/fake.h"

namespace fake {
namespace {

std::atomic<uint32_t> serialized{0};  // by whom, as Serializer

// With context->mutex held.
uint64_t earliest(CUstream stream, bool kernel) {
  CUcontext context = stream->context;
  uint64_t start = std::max(now() + kLatency, stream->until);
  if (stream == &context->legacy) start = std::max(start, context->blocking_until);
  else if (stream->blocking) start = std::max(start, context->legacy.until);
  if (kernel && serialized) start = std::max(start, context->kernels_until);
  return start;
}

void occupy(CUstream stream, uint64_t end, bool kernel) {
  CUcontext context = stream->context;
  stream->until = std::max(stream->until, end);
  context->until = std::max(context->until, end);
  if (stream->blocking) context->blocking_until = std::max(context->blocking_until, end);
  if (kernel) context->kernels_until = std::max(context->kernels_until, end);
}

bool is_kernel(const Work* work) {
  return work && work->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
}

Operation placed(CUstream stream, const Work& work, uint64_t start, uint32_t correlation) {
  Operation operation;
  operation.work = work;
  operation.start = start;
  operation.end = start + work.duration;
  operation.correlation = correlation;
  operation.device = uint32_t(stream->context->device);
  operation.context = stream->context->id;
  operation.stream = stream->id;
  if (const CUfunc_st* function = work.function) {
    operation.name = function->name;
    operation.registers = function->registers;
    operation.static_shared = function->static_shared;
    operation.local = function->local;
  }
  return operation;
}

// What CUPTI says of it where it is mistaken, or where the work is of a call that it does not tell of.
Operation as_told(Operation operation) {
  static std::atomic<uint32_t> told{0};
  const uint32_t number = ++told;
  if (faults().early && number % faults().early == 0) operation.start -= 1'000'000;
  if (faults().stray && number % faults().stray == 0) operation.correlation |= 1u << 31;
  return operation;
}

void report(CUcontext context, const Operation& operation) {
  truth_operation(operation);
  activity(as_told(operation));
  sample(context, operation);
}

// A graph of which nothing runs has no record. [A choice.]
void report_whole(CUcontext context, const std::vector<Operation>& nodes) {
  if (nodes.empty()) return;
  Operation whole = nodes[0];
  whole.work = Work();
  whole.work.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
  whole.graph_node = whole.graph_source = 0;
  whole.name = nullptr;
  for (const Operation& node : nodes) {
    whole.start = std::min(whole.start, node.start);
    whole.end = std::max(whole.end, node.end);
    sample(context, node);
  }
  truth_operation(whole);
  activity(whole);
}

}  // namespace

void serialize_kernels(Serializer by, bool on) {
  if (on) serialized |= by;
  else serialized &= ~uint32_t{by};
}

uint64_t enqueue(CUstream stream, const Work& work, uint32_t correlation) {
  Operation operation;
  {
    std::unique_lock<std::mutex> lock(stream->context->mutex);
    if (stream->capture) {
      lock.unlock();
      CUgraphNodeType type = is_kernel(&work) ? CU_GRAPH_NODE_TYPE_KERNEL
                             : work.kind == CUPTI_ACTIVITY_KIND_MEMSET ? CU_GRAPH_NODE_TYPE_MEMSET
                                                                       : CU_GRAPH_NODE_TYPE_MEMCPY;
      capture_node(stream, type, &work);
      return 0;
    }
    bool kernel = is_kernel(&work);
    operation = placed(stream, work, earliest(stream, kernel), correlation);
    if (kernel && work.function && work.function->waited) {
      stream->held = std::make_shared<Operation>(operation);
      return operation.end;
    }
    occupy(stream, operation.end, kernel);
  }
  report(stream->context, operation);
  return operation.end;
}

// However late a busy machine lets this thread wait, and wakes it, the kernel runs for as long as the
// wait does.
void run_held(CUstream stream) {
  std::shared_ptr<Operation> held;
  {
    std::lock_guard<std::mutex> lock(stream->context->mutex);
    held.swap(stream->held);
  }
  if (!held) return;
  sleep_until(std::max(now(), held->start) + held->work.duration);
  {
    std::lock_guard<std::mutex> lock(stream->context->mutex);
    held->end = now();
    occupy(stream, held->end, true);
  }
  report(stream->context, *held);
}

// Nodes keep to their dependencies only; all are told under the stream of the launch. (The real
// one spreads branches over streams of its own; which ids these have is not documented.)
void enqueue_graph(CUstream stream, const std::vector<GraphWork>& nodes, uint32_t graph,
                   uint32_t correlation) {
  std::vector<Operation> operations;
  {
    std::lock_guard<std::mutex> lock(stream->context->mutex);
    uint64_t begin = earliest(stream, false);
    std::vector<uint64_t> ends(nodes.size(), begin);
    for (size_t i = 0; i < nodes.size(); ++i) {
      uint64_t start = begin;
      for (size_t before : nodes[i].after) start = std::max(start, ends[before]);
      bool kernel = is_kernel(nodes[i].work);
      if (kernel && serialized) start = std::max(start, stream->context->kernels_until);
      ends[i] = start;
      if (!nodes[i].work) continue;
      operations.push_back(placed(stream, *nodes[i].work, start, correlation));
      operations.back().graph = graph;
      operations.back().graph_node = nodes[i].node;
      operations.back().graph_source = nodes[i].source;
      ends[i] = operations.back().end;
      occupy(stream, ends[i], kernel);
    }
  }
  if (graphs_are_whole()) return report_whole(stream->context, operations);
  for (const Operation& operation : operations) report(stream->context, operation);
}

}  // namespace fake
