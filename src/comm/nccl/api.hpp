// The functions of NCCL that dtrain uses, loaded when they are first needed. The declarations are those of nccl.h
// since 2.18, which promises to keep them; tests compare them with the header where it is installed.
#pragma once

#include <climits>
#include <cstddef>

#include <dtrain/base/files.hpp>

namespace dtrain::comm::nccl {

enum class Result : int {
  success = 0,
  unhandled_cuda_error = 1,
  system_error = 2,
  internal_error = 3,
  invalid_argument = 4,
  invalid_usage = 5,
  remote_error = 6,
  in_progress = 7
};

enum class DataType : int { float32 = 7, bfloat16 = 9 };
enum class Operation : int { sum = 0 };

struct UniqueId {
  char bytes[128];
};

// ncclConfig_t of 2.18; a newer NCCL treats fields that it lacks as undefined.
struct Config {
  std::size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 21800;
  int blocking = 0;
  int cga_cluster_size = INT_MIN;
  int least_blocks = INT_MIN;
  int most_blocks = INT_MIN;
  const char* net_name = nullptr;
  int split_share = INT_MIN;
};

class Opaque;
using Handle = Opaque*;  // ncclComm_t

// Streams are cudaStream_t.
struct Api {
  Result (*get_version)(int* version);
  Result (*get_unique_id)(UniqueId* id);
  Result (*init)(Handle* handle, int ranks, UniqueId id, int rank, Config* config);
  Result (*async_error)(Handle handle, Result* error);
  Result (*group_start)();
  Result (*group_end)();
  Result (*send)(const void* from, std::size_t count, DataType type, int peer, Handle handle, void* stream);
  Result (*receive)(void* to, std::size_t count, DataType type, int peer, Handle handle, void* stream);
  Result (*all_reduce)(const void* from, void* to, std::size_t count, DataType type, Operation operation, Handle handle,
                       void* stream);
  Result (*abort)(Handle handle);
  const char* (*error_text)(Result result);
};

// The library of this file, which stays loaded: NCCL leaves threads behind. Throws UsageError where it cannot be
// opened or lacks one of the functions.
Api load(const Path& file);

}  // namespace dtrain::comm::nccl
