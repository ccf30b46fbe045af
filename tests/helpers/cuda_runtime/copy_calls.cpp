// cuda*: copies. Where a copy goes to, there is nothing of use from its beginning to its end: in its first turn it is
// filled with NaNs, and on the host at once.
#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "machine.hpp"

using namespace dtrain::testing::cuda_runtime;

namespace {

struct Copy {
  std::byte* to;
  const std::byte* from;
  std::size_t bytes;
};

// A side that is this GPU's where `of_gpu`, else the host's. Throws Refusal.
Kind check_side(const Machine& machine, const CUstream_st& stream, const void* side, std::size_t bytes, bool of_gpu) {
  const Reservation* const held = machine.memory.find(side, bytes);
  const Kind kind = held ? held->kind : Kind::pageable;
  if ((kind == Kind::gpu) != of_gpu) {
    throw Refusal{cudaErrorInvalidValue,
                  of_gpu ? "memory of the host instead of a GPU's" : "memory of a GPU instead of the host's"};
  }
  if (kind == Kind::gpu && held->gpu != stream.gpu) {
    throw Refusal{cudaErrorInvalidValue, "memory of another GPU than the stream's"};
  }
  return kind;
}

std::size_t hash_of(const Copy& copy) {
  return std::hash<std::string_view>()({reinterpret_cast<const char*>(copy.from), copy.bytes});
}

std::vector<std::function<void()>> turns_of(const Copy& copy) {
  return {[copy] { std::memset(copy.to, 0xff, copy.bytes); }, [copy] { std::memcpy(copy.to, copy.from, copy.bytes); }};
}

// Its source is looked at when it is asked for and when it is done.
Operation from_page_locked(Machine& machine, const Copy& copy) {
  Operation operation{.name = "a copy to the GPU", .turns = turns_of(copy)};
  operation.turns.push_back([&machine, copy, before = hash_of(copy)] {
    if (hash_of(copy) != before) {
      machine.findings.push_back(
          fmt::format("cudaMemcpyAsync: {} bytes of page-locked memory changed before they were copied", copy.bytes));
    }
  });
  return operation;
}

// The driver takes what it can not read later before the call returns.
Operation from_pageable(const Copy& copy) {
  const auto kept = std::make_shared<std::vector<std::byte>>(copy.from, copy.from + copy.bytes);
  Operation operation{.name = "a copy to the GPU", .turns = turns_of({copy.to, kept->data(), copy.bytes})};
  operation.turns.push_back([kept] {});
  return operation;
}

void copy_to_gpu(Machine& machine, CUstream_st& stream, const Copy& copy) {
  check_side(machine, stream, copy.to, copy.bytes, true);
  if (check_side(machine, stream, copy.from, copy.bytes, false) == Kind::page_locked) {
    return machine.submit(stream, [&machine, copy](const CUstream_st&) { return from_page_locked(machine, copy); });
  }
  if (stream.capture) throw Refusal{cudaErrorStreamCaptureUnsupported, "a copy of pageable memory in a recording"};
  machine.submit(stream, [copy](const CUstream_st&) { return from_pageable(copy); });
}

void copy_to_host(Machine& machine, CUstream_st& stream, const Copy& copy) {
  check_side(machine, stream, copy.from, copy.bytes, true);
  check_side(machine, stream, copy.to, copy.bytes, false);
  if (!stream.capture) std::memset(copy.to, 0xff, copy.bytes);
  machine.submit(
      stream, [copy](const CUstream_st&) { return Operation{.name = "a copy to the host", .turns = turns_of(copy)}; });
}

void copy_on_gpu(Machine& machine, CUstream_st& stream, const Copy& copy) {
  check_side(machine, stream, copy.from, copy.bytes, true);
  check_side(machine, stream, copy.to, copy.bytes, true);
  if (copy.to < copy.from + copy.bytes && copy.from < copy.to + copy.bytes) {
    throw Refusal{cudaErrorInvalidValue, "a copy onto itself"};
  }
  machine.submit(
      stream, [copy](const CUstream_st&) { return Operation{.name = "a copy on the GPU", .turns = turns_of(copy)}; });
}

}  // namespace

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t handle) {
  return call("cudaMemcpyAsync", [&](Machine& machine) {
    CUstream_st& stream = use(machine, handle);
    if (bytes == 0) return;
    const Copy copy{static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes};
    switch (kind) {
      case cudaMemcpyHostToDevice:
        return copy_to_gpu(machine, stream, copy);
      case cudaMemcpyDeviceToHost:
        return copy_to_host(machine, stream, copy);
      case cudaMemcpyDeviceToDevice:
        return copy_on_gpu(machine, stream, copy);
      default:
        throw Refusal{cudaErrorInvalidMemcpyDirection, "a direction that the stand-in does not know"};
    }
  });
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t handle) {
  return call("cudaMemsetAsync", [&](Machine& machine) {
    CUstream_st& stream = use(machine, handle);
    check_side(machine, stream, to, bytes, true);
    machine.submit(stream, [=](const CUstream_st&) {
      return Operation{.name = "filling memory", .turns = {[=] { std::memset(to, value, bytes); }}};
    });
  });
}
