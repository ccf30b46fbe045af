#include "natives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "../device_bytes.hpp"
#include "../kernels.hpp"
#include "native.hpp"

namespace dtrain::backend::cuda {
namespace {

constexpr std::uint64_t kPlaceStep = 256;                                    // where a result begins
constexpr std::uint64_t kAnswer = Compare<float>::kThreads * sizeof(float);  // of a comparison, before all of them

// work(output, its place among the others) for those that have room.
template <typename Work>
void for_outputs(const Outputs& outputs, std::uint64_t room, Work work) {
  std::uint64_t place = kAnswer;
  for (const Output& output : outputs) {
    const std::uint64_t end = place + output.whole_bytes();
    if (end > room) continue;
    work(output, place);
    place = (end + kPlaceStep - 1) / kPlaceStep * kPlaceStep;
  }
}

}  // namespace

void Natives::start(const Call& call) {
  const auto [known, is_new] = ways_.try_emplace({call.name, call.work.index()}, Way::definition);
  if (is_new) {
    known->second = compare(call);
  } else if (known->second == Way::definition) {
    start_definition(call);
  } else if (!start_native(call)) {
    known->second = Way::definition;
    start_kernels(call);  // its parts were not compared yet, and a capture may be under way
  }
}

bool Natives::start_native(const Call& call) {
  const auto started = launch_native(call.work, stream_);
  if (!started || *started == cudaSuccess) return started.has_value();
  cudaGetLastError();  // or the launch behind it would be taken for what failed
  refusals_.push_back(fmt::format("{}: {}", call.name, cudaGetErrorString(*started)));
  return false;
}

void Natives::start_definition(const Call& call) {
  const std::vector<Call> parts = definition_of(call);
  if (parts.empty()) return check(launch(call.work, stream_), call.name);
  for (const Call& part : parts) start(part);
}

void Natives::start_kernels(const Call& call) {
  const std::vector<Call> parts = definition_of(call);
  if (parts.empty()) return check(launch(call.work, stream_), call.name);
  for (const Call& part : parts) start_kernels(part);
}

// Leaves what later runs compute too: the definition's numbers, or those of a native kernel that rounds otherwise.
// Where the definition is the way from now on, all its parts have been started once.
Natives::Way Natives::compare(const Call& call) {
  const Outputs outputs = outputs_of(call.work);
  // What the native kernel forgets to write shows: no number has these bits.
  for (const Output& output : outputs) {
    check(cudaMemsetAsync(output.data, 0xff, output.whole_bytes(), stream_), call.name);
  }
  if (start_native(call)) {
    for_outputs(outputs, bytes_, [&](const Output& output, std::uint64_t place) {
      check(cudaMemcpyAsync(room_ + place, output.data, output.whole_bytes(), cudaMemcpyDeviceToDevice, stream_),
            call.name);
    });
    start_kernels(call);
    if (differ(outputs, call.name)) {
      refusals_.push_back(fmt::format("{}: its result is not that of its definition", call.name));
    } else {
      // The first run leaves the bits of all later ones, so that workers that join at different times agree.
      const bool rounds = std::ranges::any_of(outputs, [](const Output& output) { return output.rounded.has_value(); });
      if (!rounds || start_native(call)) return Way::native;
    }
  }
  start_definition(call);
  return Way::definition;
}

bool Natives::differ(const Outputs& outputs, const std::string& name) {
  bool found = false;
  for_outputs(outputs, bytes_, [&](const Output& output, std::uint64_t place) {
    if (found) return;
    const std::byte* const copy = room_ + place;
    if (!output.rounded) {
      found = differ<std::uint32_t>(output, copy, {}, name);
      return;
    }
    const std::vector<std::byte> defined =
        bytes_at(output.data, static_cast<std::uint64_t>(output.bytes), stream_, name);
    const Tolerance tolerance = tolerance_beside(defined, *output.rounded);
    with_type(*output.rounded, [&]<typename T>(T) { found = differ<T>(output, copy, tolerance, name); });
  });
  return found;
}

template <typename T>
bool Natives::differ(const Output& output, const std::byte* copy, const Tolerance& tolerance, const std::string& name) {
  auto* const answer = reinterpret_cast<float*>(room_);
  const std::size_t bytes = std::is_integral_v<T> ? output.whole_bytes() : static_cast<std::size_t>(output.bytes);
  const Compare<T> comparison{static_cast<const T*>(output.data), reinterpret_cast<const T*>(copy),
                              static_cast<std::int64_t>(bytes / sizeof(T)), tolerance, answer};
  check(launch(comparison, stream_), name);
  return std::ranges::any_of(bytes_at(answer, kAnswer, stream_, name),
                             [](std::byte byte) { return byte != std::byte{}; });
}

}  // namespace dtrain::backend::cuda
