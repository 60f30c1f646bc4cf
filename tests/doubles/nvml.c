/* Copyright (c) 2026, gpuserve contributors
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A double of libnvidia-ml.so.1: the calls that the health checks make, with NVML's own signatures (nvml.h), answered from a
 * scenario (double.h). A handle is the GPU's index + 1.
 */
#include "double.h"

#define NOT_SUPPORTED 3
#define INVALID_ARGUMENT 2
#define INSUFFICIENT_SIZE 7

typedef void *device;

static int index_of(device handle) { return (int)(long)handle - 1; }

static int ask(const char *function, int gpu, const char **text, const char *format, ...)
{
    char key[WIDTH];
    int length = snprintf(key, sizeof key, "%s", function);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(key + length, sizeof key - length, format, arguments);
    va_end(arguments);
    return scenario_call(function, key, gpu, NOT_SUPPORTED, text);
}

static int answer_uint(const char *function, int gpu, unsigned *value)
{
    const char *text;
    int code = ask(function, gpu, &text, "");
    if (!code)
        *value = (unsigned)strtoul(text, NULL, 0);
    return code;
}

static int answer_text(const char *function, int gpu, char *buffer, unsigned length)
{
    const char *text;
    int code = ask(function, gpu, &text, "");
    if (!code)
        snprintf(buffer, length, "%s", text);
    return code;
}

static int answer_numbers(const char *function, int gpu, const char *suffix, unsigned long long *values, int wanted)
{
    const char *text;
    int code = ask(function, gpu, &text, "%s", suffix);
    if (code)
        return code;
    for (int i = 0; i < wanted; i++) {
        char *end;
        values[i] = (unsigned long long)strtoll(text, &end, 0);
        text = end;
    }
    return 0;
}

EXPORT int nvmlInitWithFlags(unsigned flags)
{
    (void)flags;
    const char *text;
    int code = ask("nvmlInitWithFlags", -1, &text, "");
    return code == NOT_SUPPORTED ? 0 : code;
}

EXPORT int nvmlShutdown(void) { return 0; }

EXPORT const char *nvmlErrorString(int code)
{
    (void)code;
    return "an error of the double";
}

EXPORT int nvmlSystemGetDriverVersion(char *text, unsigned length)
{
    return answer_text("nvmlSystemGetDriverVersion", -1, text, length);
}

EXPORT int nvmlSystemGetNVMLVersion(char *text, unsigned length)
{
    return answer_text("nvmlSystemGetNVMLVersion", -1, text, length);
}

EXPORT int nvmlSystemGetCudaDriverVersion(int *version)
{
    return answer_uint("nvmlSystemGetCudaDriverVersion", -1, (unsigned *)version);
}

EXPORT int nvmlDeviceGetCount_v2(unsigned *count) { return answer_uint("nvmlDeviceGetCount", -1, count); }

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, device *handle)
{
    const char *text;
    int code = ask("nvmlDeviceGetHandleByIndex", (int)index, &text, "");
    *handle = (device)(long)(index + 1);
    return code == NOT_SUPPORTED ? 0 : code;
}

#define TEXT(function)                                                                                                         \
    EXPORT int function(device handle, char *text, unsigned length)                                                            \
    {                                                                                                                          \
        return answer_text(#function, index_of(handle), text, length);                                                         \
    }
TEXT(nvmlDeviceGetName)
TEXT(nvmlDeviceGetUUID)
TEXT(nvmlDeviceGetVbiosVersion)

#define UINT(function)                                                                                                         \
    EXPORT int function(device handle, unsigned *value) { return answer_uint(#function, index_of(handle), value); }
UINT(nvmlDeviceGetMinorNumber)
UINT(nvmlDeviceGetPersistenceMode)
UINT(nvmlDeviceGetComputeMode)
UINT(nvmlDeviceGetCurrPcieLinkGeneration)
UINT(nvmlDeviceGetMaxPcieLinkGeneration)
UINT(nvmlDeviceGetGpuMaxPcieLinkGeneration)
UINT(nvmlDeviceGetCurrPcieLinkWidth)
UINT(nvmlDeviceGetMaxPcieLinkWidth)
UINT(nvmlDeviceGetPerformanceState)
UINT(nvmlDeviceGetPowerUsage)
UINT(nvmlDeviceGetPowerManagementLimit)
UINT(nvmlDeviceGetPowerManagementDefaultLimit)
UINT(nvmlDeviceGetRetiredPagesPendingStatus)

#define UINT_BY(function)                                                                                                      \
    EXPORT int function(device handle, unsigned which, unsigned *value)                                                        \
    {                                                                                                                          \
        const char *text;                                                                                                      \
        int code = ask(#function, index_of(handle), &text, ".%u", which);                                                      \
        if (!code)                                                                                                             \
            *value = (unsigned)strtoul(text, NULL, 0);                                                                         \
        return code;                                                                                                           \
    }
UINT_BY(nvmlDeviceGetTemperature)
UINT_BY(nvmlDeviceGetTemperatureThreshold)
UINT_BY(nvmlDeviceGetClockInfo)
UINT_BY(nvmlDeviceGetMaxClockInfo)
UINT_BY(nvmlDeviceGetApplicationsClock)
UINT_BY(nvmlDeviceGetDefaultApplicationsClock)
UINT_BY(nvmlDeviceGetNvLinkState)

#define TWO(function)                                                                                                          \
    EXPORT int function(device handle, unsigned *first, unsigned *second)                                                      \
    {                                                                                                                          \
        unsigned long long values[2];                                                                                          \
        int code = answer_numbers(#function, index_of(handle), "", values, 2);                                                 \
        if (!code) {                                                                                                           \
            *first = (unsigned)values[0];                                                                                      \
            *second = (unsigned)values[1];                                                                                     \
        }                                                                                                                      \
        return code;                                                                                                           \
    }
TWO(nvmlDeviceGetCudaComputeCapability)
TWO(nvmlDeviceGetMigMode)
TWO(nvmlDeviceGetEccMode)

EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(device handle, unsigned long long *reasons)
{
    return answer_numbers("nvmlDeviceGetCurrentClocksThrottleReasons", index_of(handle), "", reasons, 1);
}

struct pci {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char bus_id[32];
};

EXPORT int nvmlDeviceGetPciInfo_v3(device handle, struct pci *info)
{
    memset(info, 0, sizeof *info);
    return answer_text("nvmlDeviceGetPciInfo", index_of(handle), info->bus_id, sizeof info->bus_id);
}

/* total reserved used */
struct memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};

EXPORT int nvmlDeviceGetMemoryInfo_v2(device handle, struct memory_v2 *info)
{
    unsigned long long values[3];
    int code = answer_numbers("nvmlDeviceGetMemoryInfo", index_of(handle), "", values, 3);
    if (!code) {
        info->total = values[0];
        info->reserved = values[1];
        info->used = values[2];
        info->free = values[0] - values[1] - values[2];
    }
    return code;
}

/* total free used: here the driver's own part counts as used. */
EXPORT int nvmlDeviceGetMemoryInfo(device handle, unsigned long long *info)
{
    struct memory_v2 found;
    int code = nvmlDeviceGetMemoryInfo_v2(handle, &found);
    if (!code) {
        info[0] = found.total;
        info[1] = found.free;
        info[2] = found.used + found.reserved;
    }
    return code;
}

EXPORT int nvmlDeviceGetBAR1MemoryInfo(device handle, unsigned long long *info)
{
    int code = answer_numbers("nvmlDeviceGetBAR1MemoryInfo", index_of(handle), "", info, 1);
    info[1] = code ? 0 : info[0];
    info[2] = 0;
    return code;
}

EXPORT int nvmlDeviceGetTotalEccErrors(device handle, unsigned error, unsigned counter, unsigned long long *count)
{
    char suffix[32];
    snprintf(suffix, sizeof suffix, ".%u.%u", error, counter);
    return answer_numbers("nvmlDeviceGetTotalEccErrors", index_of(handle), suffix, count, 1);
}

EXPORT int nvmlDeviceGetRemappedRows(device handle, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failed)
{
    unsigned long long values[4];
    int code = answer_numbers("nvmlDeviceGetRemappedRows", index_of(handle), "", values, 4);
    if (!code) {
        *corrected = (unsigned)values[0];
        *uncorrected = (unsigned)values[1];
        *pending = (unsigned)values[2];
        *failed = (unsigned)values[3];
    }
    return code;
}

/* The value is the number of pages. */
EXPORT int nvmlDeviceGetRetiredPages(device handle, unsigned cause, unsigned *count, unsigned long long *addresses)
{
    char suffix[32];
    unsigned long long pages;
    snprintf(suffix, sizeof suffix, ".%u", cause);
    int code = answer_numbers("nvmlDeviceGetRetiredPages", index_of(handle), suffix, &pages, 1);
    if (code)
        return code;
    int fits = addresses && *count >= pages;
    *count = (unsigned)pages;
    for (unsigned i = 0; fits && i < pages; i++)
        addresses[i] = 4096ULL * i;
    return fits || !pages ? 0 : INSUFFICIENT_SIZE;
}

EXPORT int nvmlDeviceGetRepairStatus(device handle, unsigned *status)
{
    unsigned long long values[2];
    int code = answer_numbers("nvmlDeviceGetRepairStatus", index_of(handle), "", values, 2);
    if (!code) {
        status[1] = (unsigned)values[0];
        status[2] = (unsigned)values[1];
    }
    return code;
}

EXPORT int nvmlDeviceGetMarginTemperature(device handle, int *info)
{
    unsigned long long value;
    int code = answer_numbers("nvmlDeviceGetMarginTemperature", index_of(handle), "", &value, 1);
    if (!code)
        info[1] = (int)value;
    return code;
}

EXPORT int nvmlDeviceGetUtilizationRates(device handle, unsigned *rates)
{
    unsigned long long value;
    int code = answer_numbers("nvmlDeviceGetUtilizationRates", index_of(handle), "", &value, 1);
    if (!code) {
        rates[0] = (unsigned)value;
        rates[1] = 0;
    }
    return code;
}

/* "PID BYTES PID BYTES ..." */
struct process {
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
};

EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(device handle, unsigned *count, struct process *processes)
{
    const char *text;
    int code = ask("nvmlDeviceGetComputeRunningProcesses", index_of(handle), &text, "");
    if (code)
        return code;
    unsigned found = 0;
    for (;;) {
        char *end;
        unsigned long pid = strtoul(text, &end, 0);
        if (end == text)
            break;
        unsigned long long memory = strtoull(end, &end, 0);
        if (processes && found < *count)
            processes[found] = (struct process){(unsigned)pid, memory, ~0U, ~0U};
        found++;
        text = end;
    }
    int fits = processes && found <= *count;
    *count = found;
    return fits || !found ? 0 : INSUFFICIENT_SIZE;
}

struct field {
    unsigned id, scope;
    long long timestamp, latency;
    unsigned type;
    int code;
    union {
        double number;
        unsigned whole;
        unsigned long long wide;
    } value;
};

EXPORT int nvmlDeviceGetFieldValues(device handle, int count, struct field *fields)
{
    for (int i = 0; i < count; i++) {
        const char *text;
        fields[i].code = ask("nvmlDeviceGetFieldValues", index_of(handle), &text, ".%u", fields[i].id);
        fields[i].type = 1;
        if (!fields[i].code)
            fields[i].value.wide = strtoull(text, NULL, 0);
    }
    return 0;
}

/* "STATE STATUS" */
struct fabric {
    unsigned version;
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
    unsigned health;
};

EXPORT int nvmlDeviceGetGpuFabricInfoV(device handle, struct fabric *info)
{
    unsigned long long values[2];
    int code = answer_numbers("nvmlDeviceGetGpuFabricInfoV", index_of(handle), "", values, 2);
    if (!code) {
        info->state = (unsigned char)values[0];
        info->status = (int)values[1];
    }
    return code;
}

/* A pair is asked for as the first GPU with the second one's index as an argument, else with *. */
static int answer_pair(const char *function, device first, device second, const char *argument, unsigned *value)
{
    const char *text;
    int code = ask(function, index_of(first), &text, ".%d%s", index_of(second), argument);
    if (code == NOT_SUPPORTED)
        code = ask(function, index_of(first), &text, "%s", argument);
    if (!code)
        *value = (unsigned)strtoul(text, NULL, 0);
    return code;
}

EXPORT int nvmlDeviceGetP2PStatus(device first, device second, unsigned which, unsigned *status)
{
    return answer_pair("nvmlDeviceGetP2PStatus", first, second, which ? ".write" : ".read", status);
}

EXPORT int nvmlDeviceGetTopologyCommonAncestor(device first, device second, unsigned *level)
{
    return answer_pair("nvmlDeviceGetTopologyCommonAncestor", first, second, "", level);
}
