#include "tensor_map.hpp"

#include <cuda_runtime.h>

namespace dtrain::backend::cuda {
namespace {

// The driver's function, as of the CUDA that introduced it; null where the driver lacks it.
auto tensor_map_encoder() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  constexpr unsigned kSince = 12000;
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, kSince, cudaEnableDefault, &found);
  if (error != cudaSuccess || found != cudaDriverEntryPointSuccess) function = nullptr;
  return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
}

}  // namespace

bool describe(CUtensorMap& map, DType dtype, const void* memory, std::int32_t rows, std::int32_t columns,
              std::int32_t box_rows) {
  static const auto encode = tensor_map_encoder();
  if (!encode) return false;
  const CUtensorMapDataType type =
      dtype == DType::bfloat16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t row_bytes[] = {static_cast<cuuint64_t>(columns) * 2};
  const cuuint32_t box[] = {kBoxWidth, static_cast<cuuint32_t>(box_rows)}, each[] = {1, 1};
  return encode(&map, type, 2, const_cast<void*>(memory), sizes, row_bytes, box, each, CU_TENSOR_MAP_INTERLEAVE_NONE,
                CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

bool describe_operand(CUtensorMap& map, DType dtype, const void* memory, Major major, std::int32_t extent,
                      std::int32_t k, std::int32_t extent_of_tile) {
  const std::int32_t height = boxes_of(major, extent_of_tile).height;
  return major == Major::k ? describe(map, dtype, memory, extent, k, height)
                           : describe(map, dtype, memory, k, extent, height);
}

}  // namespace dtrain::backend::cuda
