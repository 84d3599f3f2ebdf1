// Records nodes of CUDA graphs: where they were captured or made, and which are copies of which.
#include <cuda.h>

#include "cupti/launches.h"
#include "cupti/state.h"
#include "flame.h"
#include "system/clock.h"

namespace flame {
namespace {

bool works_on_gpu(CUgraphNodeType type) {
  return type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY ||
         type == CU_GRAPH_NODE_TYPE_MEMSET;
}

// 0 when CUPTI cannot tell
uint64_t node_id(CUgraphNode node) {
  uint64_t id = 0;
  auto look = cupti()->cuptiGetGraphNodeId;
  return look && node && !look(node, &id) ? id : 0;
}

uint32_t graph_id(CUgraph graph) {
  uint32_t id = 0;
  auto look = cupti()->cuptiGetGraphId;
  return look && graph && !look(graph, &id) ? id : 0;
}

void write_node(const CUpti_GraphData& data, uint64_t original) {
  Origin origin = origin_here();
  GraphNode node{};
  node.node = node_id(data.node);
  node.original = original;
  node.time = now();
  node.tid = origin.tid;
  node.python = origin.python;
  node.nvtx = origin.nvtx;
  node.graph = graph_id(data.graph);
  if (node.node) put(node);
}

uint32_t exec_id(CUgraphExec exec) {
  uint32_t id = 0;
  auto look = cupti()->cuptiGetGraphExecId;
  return look && exec && !look(exec, &id) ? id : 0;
}

}  // namespace

void graph_instantiated(const CUpti_GraphData& data) {
  GraphExec made{};
  made.exec = exec_id(data.graphExec);
  made.graph = graph_id(data.graph);
  if (made.exec && made.graph) put(made);
}

// Instantiation makes nodes too. These are copies, and the callback that says so tells of what.
void graph_node_created(const CUpti_GraphData& data) {
  work_was_captured();
  if (works_on_gpu(data.nodeType) && !copying_graph()) write_node(data, 0);
}

void graph_node_cloned(const CUpti_GraphData& data) {
  uint64_t original = node_id(data.originalNode);
  if (works_on_gpu(data.nodeType) && original) write_node(data, original);
}

}  // namespace flame
