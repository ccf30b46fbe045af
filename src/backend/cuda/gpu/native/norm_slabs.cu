#include "norm_slabs.hpp"

#include "norm_slab.hpp"

namespace dtrain::backend::cuda {
namespace {

__device__ std::uint32_t load_acquire(const std::uint32_t* from) {
  std::uint32_t value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(__cvta_generic_to_global(from)) : "memory");
  return value;
}

// Until all blocks of a tile have come so far; what they wrote can be read then. The ticket is as before when all have
// gone on.
__device__ void wait_for_tile(std::uint32_t* ticket, std::uint32_t blocks) {
  __threadfence();  // what this thread wrote is there before its block draws its ticket
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(ticket, 1u);
    while (load_acquire(ticket) < blocks) __nanosleep(20);
    if (atomicAdd(ticket, 1u) == 2 * blocks - 1) atomicExch(ticket, 0u);
    __threadfence();
  }
  __syncthreads();
}

template <typename Work, bool Holds>
__global__ void __launch_bounds__(Holds ? kHoldingThreads : kSlabThreads, 1)
    norm_slabs(const Work work, const SlabPlan plan, std::uint32_t* const tickets) {
  extern __shared__ uint4 memory[];
  typename SlabOf<Work, Holds>::Held held;
  const SlabOf<Work, Holds> block(work, plan, static_cast<std::int32_t>(blockIdx.x),
                                  reinterpret_cast<unsigned char*>(memory));
  const auto thread = static_cast<std::int32_t>(threadIdx.x);
  block.begin(thread);
  for (std::int32_t slab = 0; block.has(slab); ++slab) {
    block.sum(slab, thread, held);
    __syncthreads();
    block.fold(slab, thread);
    wait_for_tile(tickets + block.tile_of(slab), static_cast<std::uint32_t>(plan.blocks));
    block.sum_groups(slab, thread);
    __syncthreads();
    block.finish(slab, thread);
    __syncthreads();
    block.make(slab, thread, held);
  }
}

template <typename T, bool Gelu, bool NormsResidual>
std::uint32_t* tickets_of(const NormForward<T, Gelu, NormsResidual>& work) {
  return work.statistics.tickets;
}
template <typename T, bool Gelu>
std::uint32_t* tickets_of(const NormBackward<T, Gelu>& work) {
  return work.totals.tickets;
}

template <typename Work>
auto* kernel_for(const SlabPlan& plan) {
  if constexpr (kMayHold<Work>) {
    if (plan.held > 0) return norm_slabs<Work, true>;
  }
  return norm_slabs<Work, false>;
}

}  // namespace

template <typename Work>
cudaError_t launch_norm_slabs(const Work& work, const SlabPlan& plan, const ChipFacts& chip, cudaStream_t stream) {
  const auto kernel = kernel_for<Work>(plan);
  const auto bytes = static_cast<std::size_t>(plan.shared_bytes());
  // The limit is the kernel's, and recorded steps launch it for several layers: one for all of them.
  const cudaError_t given = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, chip.block_bytes);
  if (given != cudaSuccess) return given;
  int at_once = 0;  // blocks on a processor
  const cudaError_t known = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&at_once, kernel, plan.threads, bytes);
  if (known != cudaSuccess) return known;
  const std::int32_t blocks = plan.at_once * plan.blocks;
  if (at_once * chip.processors < blocks) return cudaErrorCooperativeLaunchTooLarge;

  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(plan.threads));
  config.dynamicSmemBytes = bytes;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, kernel, work, plan, tickets_of(work));
}

#define DTRAIN_NORM_SLABS(...) \
  template cudaError_t launch_norm_slabs(const __VA_ARGS__&, const SlabPlan&, const ChipFacts&, cudaStream_t);
#define DTRAIN_NORM_SLABS_ON(T)                  \
  DTRAIN_NORM_SLABS(NormForward<T>)              \
  DTRAIN_NORM_SLABS(NormForward<T, true>)        \
  DTRAIN_NORM_SLABS(NormForward<T, false, true>) \
  DTRAIN_NORM_SLABS(NormBackward<T>)             \
  DTRAIN_NORM_SLABS(NormBackward<T, true>)
DTRAIN_NORM_SLABS_ON(float)
DTRAIN_NORM_SLABS_ON(Bf16)
DTRAIN_NORM_SLABS_ON(Half)
#undef DTRAIN_NORM_SLABS_ON
#undef DTRAIN_NORM_SLABS

}  // namespace dtrain::backend::cuda
