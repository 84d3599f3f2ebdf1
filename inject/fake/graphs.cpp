// CUDA graphs: built by capture or by hand, instantiated as a clone, launched as a whole.
#include <algorithm>
#include <deque>

#include "fake/fake.h"

struct CUgraphNode_st {
  uint64_t id = 0;
  uint64_t source = 0;  // of a copy: the node that it was made of or last updated from
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  bool works = false;  // `work` is set
  fake::Work work;
  std::vector<size_t> after;  // positions in the graph
  size_t position = 0;
  CUgraph child = nullptr;  // of a child graph node: a clone of its own
};

struct CUgraph_st {
  uint32_t id = 0;
  std::mutex mutex;
  std::deque<CUgraphNode_st> nodes;  // a deque: handles are pointers to its elements
};

struct CUgraphExec_st {
  CUgraph graph = nullptr;  // a clone of its own
};

namespace fake {
namespace {

std::atomic<uint32_t> graphs{0};

void tell_node(CUpti_CallbackIdResource what, CUgraph graph, CUgraphNode node,
               CUgraph original_graph = nullptr, CUgraphNode original = nullptr) {
  CUpti_GraphData data = {};
  data.graph = graph;
  data.originalGraph = original_graph;
  data.node = node;
  data.originalNode = original;
  data.nodeType = node->type;
  tell_graph(what, data);
}

CUgraphNode append(CUgraph graph, CUgraphNodeType type, const Work* work,
                   std::vector<size_t> after) {
  std::lock_guard<std::mutex> lock(graph->mutex);
  graph->nodes.emplace_back();
  CUgraphNode_st& node = graph->nodes.back();
  node.position = graph->nodes.size() - 1;
  // As seen in traces: the graph in the upper half.
  node.id = uint64_t(graph->id) << 32 | (node.position + 1);
  node.type = type;
  node.works = work != nullptr;
  if (work) node.work = *work;
  node.after = std::move(after);
  return &node;
}

CUgraph clone(CUgraph original);

// A node of a clone is first told of as created, then as cloned: NVIDIA's sample cuda_graphs_trace
// takes care to leave out the former.
void clone_node(CUgraph graph, CUgraph original_graph, CUgraphNode_st& original) {
  uint64_t before = now();
  CUgraphNode node =
      append(graph, original.type, original.works ? &original.work : nullptr, original.after);
  tell_node(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, graph, node);
  node->source = original.id;
  if (!faults().no_clones)
    tell_node(CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED, graph, node, original_graph, &original);
  truth_node(node->id, original.id, graph->id, node->type, before);
  if (original.child) node->child = clone(original.child);
}

CUgraph clone(CUgraph original) {
  CUgraph graph = new_graph(false);
  CUpti_GraphData data = {};
  data.graph = graph;
  data.originalGraph = original;
  tell_graph(CUPTI_CBID_RESOURCE_GRAPH_CLONED, data);
  for (CUgraphNode_st& node : original->nodes) clone_node(graph, original, node);
  return graph;
}

CUresult instantiate(CUgraphExec* result, CUgraph graph, uint32_t cbid) {
  if (CUresult error = usable()) return error;
  Call call(cbid);
  if (!result || !graph) return call.done(CUDA_ERROR_INVALID_VALUE);
  auto* exec = new CUgraphExec_st;
  CUpti_GraphData data = {};
  data.graph = graph;
  data.graphExec = exec;
  tell_graph(CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATE_STARTING, data);
  exec->graph = clone(graph);
  tell_graph(CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED, data);
  *result = exec;
  return call.done(CUDA_SUCCESS);
}

// Adds the work of `graph`, which begins after `before`; the nodes of a child graph take its node's
// place. Returns where each node's end is among `nodes`.
std::vector<std::vector<size_t>> flatten(const CUgraph_st& graph, const std::vector<size_t>& before,
                                         std::vector<GraphWork>* nodes) {
  std::vector<std::vector<size_t>> ends;
  for (const CUgraphNode_st& node : graph.nodes) {
    std::vector<size_t> after = before;
    for (size_t other : node.after) {
      after.insert(after.end(), ends[other].begin(), ends[other].end());
    }
    ends.emplace_back();
    if (node.child) {
      for (const auto& inner : flatten(*node.child, after, nodes)) {
        ends.back().insert(ends.back().end(), inner.begin(), inner.end());
      }
      if (ends.back().empty()) ends.back() = after;
    } else {
      ends.back().push_back(nodes->size());
      nodes->push_back({node.works ? &node.work : nullptr, after, node.id, node.source});
    }
  }
  return ends;
}

CUresult launch(CUgraphExec exec, CUstream handle, uint32_t cbid, bool per_thread) {
  if (CUresult error = usable()) return error;
  struct {
    CUgraphExec exec;
    CUstream stream;
  } parameters = {exec, handle};
  Call call(cbid, &parameters);
  CUcontext context = current_context();
  if (!context) return call.done(CUDA_ERROR_INVALID_CONTEXT);
  if (!exec) return call.done(CUDA_ERROR_INVALID_VALUE);
  std::vector<GraphWork> nodes;
  flatten(*exec->graph, {}, &nodes);
  enqueue_graph(stream_of(context, handle, per_thread), nodes, exec->graph->id,
                call.correlation());
  return call.done(CUDA_SUCCESS);
}

bool update(CUgraph graph, CUgraph with) {
  auto same = [](const CUgraphNode_st& one, const CUgraphNode_st& other) {
    return one.type == other.type && one.after == other.after && !one.child && !other.child;
  };
  const auto &old = graph->nodes, &now = with->nodes;
  if (!std::equal(old.begin(), old.end(), now.begin(), now.end(), same)) return false;
  for (size_t i = 0; i < now.size(); ++i) {
    graph->nodes[i].work = now[i].work;
    graph->nodes[i].source = now[i].id;
  }
  return true;
}

CUresult add(CUgraphNode* result, CUgraph graph, const CUgraphNode* after, size_t count,
             CUgraphNodeType type, const Work* work, uint32_t cbid) {
  if (CUresult error = usable()) return error;
  Call call(cbid);
  if (!result || !graph) return call.done(CUDA_ERROR_INVALID_VALUE);
  *result = add_node(graph, type, work, after, count);
  return call.done(CUDA_SUCCESS);
}

Work kernel_work(const CUDA_KERNEL_NODE_PARAMS& node) {
  CUfunction function = node.func ? node.func : reinterpret_cast<CUfunction>(node.kern);
  Work work;
  work.function = function;
  work.duration = function->duration;
  const uint32_t grid[3] = {node.gridDimX, node.gridDimY, node.gridDimZ};
  const uint32_t block[3] = {node.blockDimX, node.blockDimY, node.blockDimZ};
  std::copy(grid, grid + 3, work.grid);
  std::copy(block, block + 3, work.block);
  work.dynamic_shared = node.sharedMemBytes;
  return work;
}

Work set_work(const CUDA_MEMSET_NODE_PARAMS& node) {
  Work work;
  work.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  work.bytes = uint64_t(node.elementSize) * node.width * std::max<size_t>(node.height, 1);
  work.value = node.value;
  work.target = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  work.duration = 1000 + work.bytes / 20;
  work.asynchronous = true;
  return work;
}

}  // namespace

CUgraph new_graph(bool created) {
  auto* graph = new CUgraph_st;
  graph->id = ++graphs;
  CUpti_GraphData data = {};
  data.graph = graph;
  // With a capture: whether the real one tells at its beginning or end is not documented.
  if (created) tell_graph(CUPTI_CBID_RESOURCE_GRAPH_CREATED, data);
  return graph;
}

CUgraphNode add_node(CUgraph graph, CUgraphNodeType type, const Work* work,
                     const CUgraphNode* after, size_t count) {
  uint64_t before = now();
  std::vector<size_t> positions;
  for (size_t i = 0; i < count; ++i) positions.push_back(after[i]->position);
  CUgraphNode node = append(graph, type, work, std::move(positions));
  tell_node(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, graph, node);
  truth_node(node->id, 0, graph->id, type, before);
  return node;
}

void capture_node(CUstream stream, CUgraphNodeType type, const Work* work) {
  std::vector<CUgraphNode> after;
  CUgraph graph;
  {
    std::lock_guard<std::mutex> lock(stream->context->mutex);
    graph = stream->capture;
    after = stream->frontier;
  }
  CUgraphNode node = add_node(graph, type, work, after.data(), after.size());
  std::lock_guard<std::mutex> lock(stream->context->mutex);
  stream->frontier = {node};
}

}  // namespace fake

using namespace fake;

#define FAKE_CBID(name) CUPTI_DRIVER_TRACE_CBID_##name

FAKE_API CUresult cuGraphCreate(CUgraph* graph, unsigned) {
  if (CUresult error = usable()) return error;
  Call call(FAKE_CBID(cuGraphCreate));
  *graph = new_graph(true);
  return call.done(CUDA_SUCCESS);
}

// The memory of graphs stays: late handles in a test's library are then wrong, not fatal.

FAKE_API CUresult cuGraphDestroy(CUgraph graph) {
  if (CUresult error = usable()) return error;
  Call call(FAKE_CBID(cuGraphDestroy));
  if (!graph) return call.done(CUDA_ERROR_INVALID_VALUE);
  CUpti_GraphData data = {};
  data.graph = graph;
  tell_graph(CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING, data);
  return call.done(CUDA_SUCCESS);
}

FAKE_API CUresult cuGraphExecDestroy(CUgraphExec exec) {
  if (CUresult error = usable()) return error;
  Call call(FAKE_CBID(cuGraphExecDestroy));
  if (!exec) return call.done(CUDA_ERROR_INVALID_VALUE);
  CUpti_GraphData data = {};
  data.graph = exec->graph;
  data.graphExec = exec;
  tell_graph(CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING, data);
  return call.done(CUDA_SUCCESS);
}

FAKE_API CUresult cuGraphAddKernelNode_v2(CUgraphNode* node, CUgraph graph,
                                          const CUgraphNode* after, size_t count,
                                          const CUDA_KERNEL_NODE_PARAMS* parameters) {
  if (!parameters) return CUDA_ERROR_INVALID_VALUE;
  Work work = kernel_work(*parameters);
  return add(node, graph, after, count, CU_GRAPH_NODE_TYPE_KERNEL, &work,
             FAKE_CBID(cuGraphAddKernelNode_v2));
}

FAKE_API CUresult cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                       size_t count, const CUDA_MEMSET_NODE_PARAMS* parameters,
                                       CUcontext) {
  if (!parameters) return CUDA_ERROR_INVALID_VALUE;
  Work work = set_work(*parameters);
  return add(node, graph, after, count, CU_GRAPH_NODE_TYPE_MEMSET, &work,
             FAKE_CBID(cuGraphAddMemsetNode));
}

FAKE_API CUresult cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                      size_t count) {
  return add(node, graph, after, count, CU_GRAPH_NODE_TYPE_EMPTY, nullptr,
             FAKE_CBID(cuGraphAddEmptyNode));
}

// As documented the child is cloned here, and once more with what it is in.
FAKE_API CUresult cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph,
                                           const CUgraphNode* after, size_t count, CUgraph child) {
  if (CUresult error = usable()) return error;
  Call call(FAKE_CBID(cuGraphAddChildGraphNode));
  if (!node || !graph || !child) return call.done(CUDA_ERROR_INVALID_VALUE);
  *node = add_node(graph, CU_GRAPH_NODE_TYPE_GRAPH, nullptr, after, count);
  (*node)->child = clone(child);
  return call.done(CUDA_SUCCESS);
}

FAKE_API CUresult cuGraphClone(CUgraph* result, CUgraph graph) {
  if (CUresult error = usable()) return error;
  Call call(FAKE_CBID(cuGraphClone));
  if (!result || !graph) return call.done(CUDA_ERROR_INVALID_VALUE);
  *result = clone(graph);
  return call.done(CUDA_SUCCESS);
}

// The nodes stay what they are and do other work. (What CUPTI tells of it is not documented.)
FAKE_API CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph,
                                       CUgraphExecUpdateResultInfo* info) {
  if (CUresult error = usable()) return error;
  Call call(FAKE_CBID(cuGraphExecUpdate_v2));
  if (!exec || !graph || !info) return call.done(CUDA_ERROR_INVALID_VALUE);
  *info = {};
  if (!update(exec->graph, graph)) {
    info->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    return call.done(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  }
  return call.done(CUDA_SUCCESS);
}

FAKE_API CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  std::lock_guard<std::mutex> lock(graph->mutex);
  size_t room = nodes ? *count : 0;
  *count = graph->nodes.size();
  for (size_t i = 0; i < std::min(room, *count); ++i) nodes[i] = &graph->nodes[i];
  return usable();
}

FAKE_API CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph,
                                              unsigned long long) {
  return instantiate(exec, graph, FAKE_CBID(cuGraphInstantiateWithFlags));
}

FAKE_API CUresult cuGraphInstantiate_v2(CUgraphExec* exec, CUgraph graph, CUgraphNode*, char*,
                                        size_t) {
  return instantiate(exec, graph, FAKE_CBID(cuGraphInstantiate_v2));
}

#define FAKE_INSTANTIATE(name)                                                                   \
  FAKE_API CUresult name(CUgraphExec* exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS*) {     \
    return instantiate(exec, graph, FAKE_CBID(name));                                            \
  }
FAKE_INSTANTIATE(cuGraphInstantiateWithParams)
FAKE_INSTANTIATE(cuGraphInstantiateWithParams_ptsz)

FAKE_API CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  return launch(exec, stream, FAKE_CBID(cuGraphLaunch), false);
}

FAKE_API CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream) {
  return launch(exec, stream, FAKE_CBID(cuGraphLaunch_ptsz), true);
}

FAKE_API CUresult cuGraphUpload(CUgraphExec, CUstream) { return usable(); }

FAKE_API CUptiResult cuptiGetGraphNodeId(CUgraphNode node, uint64_t* id) {
  if (!node || !id) return CUPTI_ERROR_INVALID_PARAMETER;
  *id = node->id;
  return CUPTI_SUCCESS;
}

FAKE_API CUptiResult cuptiGetGraphId(CUgraph graph, uint32_t* id) {
  if (!graph || !id) return CUPTI_ERROR_INVALID_PARAMETER;
  *id = graph->id;
  return CUPTI_SUCCESS;
}

FAKE_API CUptiResult cuptiGetGraphExecId(CUgraphExec exec, uint32_t* id) {
  if (!exec || !id) return CUPTI_ERROR_INVALID_PARAMETER;
  *id = exec->graph->id;
  return CUPTI_SUCCESS;
}
