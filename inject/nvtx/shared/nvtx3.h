// Includes NVTX's own headers for their types: what would call the library is in the programs.
#pragma once
#ifndef NVTX_NO_IMPL
#define NVTX_NO_IMPL
#endif
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>
