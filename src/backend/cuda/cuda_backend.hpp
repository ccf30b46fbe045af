// The backend on any Device.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <dtrain/backend/backend.hpp>

#include "device.hpp"

namespace dtrain::backend::cuda {

// What is known of a device before it is opened.
struct DeviceFacts {
  std::string description;  // the chip and the versions of what computes: job state
  bool has_bfloat16 = false;
  bool same_bits = true;  // see Backend
};

// Opens the device when something is compiled for the first time: who only asks takes none of its memory.
std::unique_ptr<Backend> make_backend_on(DeviceFacts facts, std::function<std::shared_ptr<Device>()> open);

}  // namespace dtrain::backend::cuda
