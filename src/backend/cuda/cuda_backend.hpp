// The backend on any Device.
#pragma once

#include <memory>

#include "device.hpp"

namespace dtrain::backend::cuda {

std::unique_ptr<Backend> make_backend_on(std::shared_ptr<Device> device);

}  // namespace dtrain::backend::cuda
