// Checkpoints behind s3://: the same two files as in a folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/train/checkpoint.hpp>

#include "safetensors.hpp"

namespace dtrain::train {

bool is_far(const Path& path);

// nullopt: it is not there.
std::optional<net::ObjectState> find_far(const Path& url, const SharedStore& store);
// Its first `size` bytes, of those that it has.
std::vector<std::byte> read_beginning(const Path& url, const net::ObjectState& found, std::uint64_t size,
                                      const SharedStore& store);
// The whole file; nullopt: it is not there. Throws DataError for more than `limit` bytes, before it allocates them.
std::optional<std::vector<std::byte>> read_far(const Path& url, std::uint64_t limit, const SharedStore& store);
// The text of a manifest, in a folder or behind a URL; nullopt: it is not there.
std::optional<std::string> read_manifest(const Path& file, const SharedStore& store);
// STEM.safetensors, then STEM.json. Meanwhile there is no manifest, so no checkpoint.
void write_far(const std::string& stem, std::string_view header, std::span<const NamedTensor> tensors,
               std::string_view manifest, const SharedStore& store);
void replace_far(const Path& url, std::string_view content, const SharedStore& store);
// Writes a small object and removes it, if it may. Throws where it cannot be written.
void try_far(const Path& url, const SharedStore& store);
void remove_far(const Path& url, const SharedStore& store);
// What begins with PREFIX and is in its folder: "m/r2" lists m/r2-0001.json, and nothing below m/r2-old/.
std::vector<Path> list_far(const Path& prefix, const SharedStore& store);

}  // namespace dtrain::train
