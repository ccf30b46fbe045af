#include <type_traits>

#include "async_copy.hpp"
#include "muon_product_block.hpp"
#include "muon_products.hpp"

namespace dtrain::backend::cuda {
namespace {

// On one processor; it bounds the registers of a thread.
constexpr unsigned kBlocksAtOnce = 3;

using Words = std::uint32_t[4];

template <bool Transposed>
__device__ void load_matrices(const unsigned char* from, Words& to) {
  if constexpr (Transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(from))
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(from))
                 : "memory");
  }
}

__device__ void multiply_fragments(Bf16, const Words& a, const std::uint32_t* b, float (&sums)[4]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ void multiply_fragments(Half, const Words& a, const std::uint32_t* b, float (&sums)[4]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// One step on tensor cores.
template <typename B>
__device__ void multiply_on_tensor_cores(std::int32_t thread, const unsigned char* stage, typename B::Sums& sums) {
  constexpr std::int32_t kDepthOfFragment = 16;
  const std::int32_t warp = thread / B::kLanes, lane = thread % B::kLanes;
  DTRAIN_UNROLL
  for (std::int32_t k = 0; k < B::kDepth; k += kDepthOfFragment) {
    Words a[B::kRowBlocks], b;
    DTRAIN_UNROLL
    for (int block = 0; block < B::kRowBlocks; ++block)
      load_matrices<B::by_depth>(stage + B::fragment_place(false, lane, B::warp_row(warp) + block * 16, k), a[block]);
    load_matrices<B::by_depth>(stage + B::fragment_place(true, lane, B::warp_column(warp), k), b);
    DTRAIN_UNROLL
    for (int row = 0; row < B::kRowBlocks; ++row) {
      DTRAIN_UNROLL
      for (int column = 0; column < B::kColumnBlocks; ++column)
        multiply_fragments(typename B::T{}, a[row], b + 2 * column, sums[row][column]);
    }
  }
}

template <typename B>
__device__ void load_step(const B& block, std::int32_t step, unsigned char* memory) {
  if (step < block.steps()) {
    unsigned char* const stage = memory + step % B::kStages * B::kStageBytes;
    DTRAIN_UNROLL
    for (int factor = 0; factor < 2; ++factor) {
      DTRAIN_UNROLL
      for (std::int32_t index = 0; index < B::kChunks; index += B::kThreads) {
        const auto chunk = block.chunk(factor == 1, step, index + static_cast<std::int32_t>(threadIdx.x));
        begin_copy(chunk.from, chunk.there, stage + chunk.place);
      }
    }
  }
  end_group();  // also an empty one, so that the groups count the steps
}

template <typename Product, typename Multiply>
__device__ void compute_tile(const Product& product, Multiply multiply) {
  using B = MuonProductBlock<Product>;
  __shared__ alignas(128) unsigned char memory[B::kBytes];
  const B block(product, blockIdx.x);
  const auto thread = static_cast<std::int32_t>(threadIdx.x);
  typename B::Sums sums = {};
  for (std::int32_t step = 0; step < B::kStages - 1; ++step) load_step(block, step, memory);
  for (std::int32_t step = 0; step < block.steps(); ++step) {
    wait_for_copies<B::kStages - 2>();
    __syncthreads();  // this step is there for all, and what all did with the step before it is done
    load_step(block, step + B::kStages - 1, memory);
    multiply(thread, memory + step % B::kStages * B::kStageBytes, sums);
  }
  block.store(thread, sums);
}

template <typename Product>
__global__ void __launch_bounds__(MuonProductBlock<Product>::kThreads, kBlocksAtOnce)
    tensor_products(const Product product) {
  using B = MuonProductBlock<Product>;
  compute_tile(product, [](std::int32_t thread, const unsigned char* stage, typename B::Sums& sums) {
    multiply_on_tensor_cores<B>(thread, stage, sums);
  });
}

template <typename Product>
__global__ void __launch_bounds__(MuonProductBlock<Product>::kThreads, kBlocksAtOnce)
    float_products(const Product product) {
  using B = MuonProductBlock<Product>;
  compute_tile(product, [](std::int32_t thread, const unsigned char* stage, typename B::Sums& sums) {
    B::multiply(thread, stage, sums);
  });
}

}  // namespace

template <typename Product>
cudaError_t launch_muon_products(const Tiled<Product>& work, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(work.tiles);
  if (blocks == 0) return cudaSuccess;
  if constexpr (std::is_same_v<typename Product::Value, float>) {
    float_products<<<blocks, MuonProductBlock<Product>::kThreads, 0, stream>>>(work.product);
  } else {
    tensor_products<<<blocks, MuonProductBlock<Product>::kThreads, 0, stream>>>(work.product);
  }
  return cudaGetLastError();
}

#define DTRAIN_MUON_PRODUCTS(T)                                                             \
  template cudaError_t launch_muon_products(const Tiled<MuonGram<T>>&, cudaStream_t);       \
  template cudaError_t launch_muon_products(const Tiled<MuonPolynomial<T>>&, cudaStream_t); \
  template cudaError_t launch_muon_products(const Tiled<MuonAdvance<T>>&, cudaStream_t);
DTRAIN_MUON_PRODUCTS(float)
DTRAIN_MUON_PRODUCTS(Bf16)
DTRAIN_MUON_PRODUCTS(Half)
#undef DTRAIN_MUON_PRODUCTS

}  // namespace dtrain::backend::cuda
