// Matrices as TMA reads and writes them.
#pragma once

#include <cuda.h>

#include <dtrain/backend/dtype.hpp>

#include "product_layout.hpp"

namespace dtrain::backend::cuda {

// A matrix of two-byte values, row-major, read or written in boxes of so many rows. False: the driver refuses it.
bool describe(CUtensorMap& map, DType dtype, const void* memory, std::int32_t rows, std::int32_t columns,
              std::int32_t box_rows);

// An operand of a product, whose tiles are so far in the direction that is not k.
bool describe_operand(CUtensorMap& map, DType dtype, const void* memory, Major major, std::int32_t extent,
                      std::int32_t k, std::int32_t extent_of_tile);

}  // namespace dtrain::backend::cuda
