// One picture of data pack.
#pragma once

#include <dtrain/data/pack.hpp>

namespace dtrain::data {

// The payload of its record. Throws DataError when the file cannot be decoded.
std::string packed_payload(ByteView file, const PackOptions& options);

}  // namespace dtrain::data
