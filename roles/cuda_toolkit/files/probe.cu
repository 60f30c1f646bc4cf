// Compiled, never run: it proves that nvcc finds its headers, its libdevice and the host's compiler.
#include <cuda/std/array>
#include <cuda_runtime.h>

__global__ void probe(float *values) {
    cuda::std::array<float, 2> pair = {values[threadIdx.x], 1.0f};
    values[threadIdx.x] = expf(pair[0]) + pair[1];
}
