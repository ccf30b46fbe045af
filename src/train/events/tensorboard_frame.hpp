// One record of a TFRecord file (tensorflow/core/lib/io/record_writer.h).
#pragma once

#include <string>
#include <string_view>

namespace dtrain::train {

// Length (8 bytes), its masked CRC-32C (4), the payload, its masked CRC-32C (4), all little-endian.
std::string tensorboard_frame(std::string_view payload);

}  // namespace dtrain::train
