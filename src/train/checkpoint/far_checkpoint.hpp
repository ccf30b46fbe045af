// Checkpoints behind s3://: the same two files as in a folder.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/train/checkpoint.hpp>

#include "safetensors.hpp"

namespace dtrain::train {

bool is_far(const Path& path);

// The whole file, of any size; nullopt: it is not there.
std::optional<std::vector<std::byte>> read_far(const Path& url, const SharedStore& store);
// STEM.safetensors, then STEM.json. Meanwhile there is no manifest, so no checkpoint.
void write_far(const std::string& stem, std::string_view header, std::span<const NamedTensor> tensors,
               std::string_view manifest, const SharedStore& store);
void remove_far(const Path& url, const SharedStore& store);
// What begins with PREFIX.
std::vector<Path> list_far(const Path& prefix, const SharedStore& store);

}  // namespace dtrain::train
