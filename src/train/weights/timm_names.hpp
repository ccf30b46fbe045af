// timm's names of layers that torchvision calls otherwise.
#pragma once

#include <optional>
#include <string>

namespace dtrain::train {

// timm's name of a layer of one of torchvision's networks, which computes the same there; nullopt where timm has the
// same name, or where this program does not know its name.
std::optional<std::string> timm_name(const std::string& network, const std::string& layer);

}  // namespace dtrain::train
