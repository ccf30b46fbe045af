#include "folded_sums.hpp"

#include "sum_block.hpp"

namespace dtrain::backend::cuda {
namespace {

// On one processor; it bounds the registers of a thread.
constexpr unsigned kBlocksAtOnce = 2;

// Whether all blocks of this tile but this one are done, and what they wrote can be read. The ticket is as before then.
__device__ bool is_last(std::uint32_t* ticket, std::uint32_t blocks) {
  __shared__ bool last;
  __threadfence();  // what this thread wrote is there before its block draws its ticket
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(ticket, 1u) == blocks - 1;
    if (last) *ticket = 0;
  }
  __syncthreads();
  if (last) __threadfence();
  return last;
}

template <typename Sums, typename Finish>
__global__ void __launch_bounds__(SumTile::kThreads, kBlocksAtOnce)
    folded_sums(const FoldedSums<Sums, Finish> work, const std::int32_t packs) {
  using B = SumBlock<Sums, Finish>;
  __shared__ alignas(16) unsigned char memory[B::bytes(SumTile::kThreads, SumTile::kWidest, kMostFolds)];
  auto* const parts = reinterpret_cast<float*>(memory);
  auto* const groups = reinterpret_cast<double*>(memory);

  const auto first_fold = static_cast<std::int32_t>(blockIdx.y) * SumTile::kFolds;
  const B block(work, {packs, static_cast<std::int32_t>(blockIdx.x), first_fold, SumTile::kFolds, SumTile::kThreads});
  const auto thread = static_cast<std::int32_t>(threadIdx.x);
  block.sum_parts(thread, parts);
  __syncthreads();
  block.fold_parts(thread, parts);
  if (!is_last(work.tickets + blockIdx.x, gridDim.y)) return;
  block.sum_groups_of_folds(thread, groups);
  __syncthreads();
  block.finish(thread, groups);
}

}  // namespace

template <typename Sums, typename Finish>
cudaError_t launch_folded_sums(const FoldedSums<Sums, Finish>& work, cudaStream_t stream) {
  const SumTile tile = sum_tile(packs_of(work.sums.channels(), SumBlock<Sums, Finish>::size));
  const std::int64_t blocks_of_tile = packs_of(work.sums.cut.folded_parts, SumTile::kFolds);
  const dim3 blocks(static_cast<unsigned>(tile.tiles), static_cast<unsigned>(blocks_of_tile));
  folded_sums<<<blocks, SumTile::kThreads, 0, stream>>>(work, tile.packs);
  return cudaGetLastError();
}

#define DTRAIN_FOLDED_SUMS(T)                                                                \
  template cudaError_t launch_folded_sums(const NormStatistics<T>&, cudaStream_t);           \
  template cudaError_t launch_folded_sums(const NormGradientTotals<T>&, cudaStream_t);       \
  template cudaError_t launch_folded_sums(const NormGradientTotals<T, true>&, cudaStream_t); \
  template cudaError_t launch_folded_sums(const ColumnTotals<T>&, cudaStream_t);             \
  template cudaError_t launch_folded_sums(const WhiteningTotals<T>&, cudaStream_t);
DTRAIN_FOLDED_SUMS(float)
DTRAIN_FOLDED_SUMS(Bf16)
DTRAIN_FOLDED_SUMS(Half)
#undef DTRAIN_FOLDED_SUMS

}  // namespace dtrain::backend::cuda
