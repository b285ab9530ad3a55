"""The feature gates that kube-scheduler 1.37 knows: stage, default, lock and what each depends on.

Source: pkg/features/kube_features.go, and the gates that client-go and component-base add to it, as they are at
version 1.37 with the minimum compatibility version 1.36, which is kube-scheduler's default.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

KUBERNETES: Final = "1.37"
"""The version of kube-scheduler that bayplan behaves as."""


class Stage(StrEnum):
    """How far a feature has come."""

    ALPHA = "ALPHA"
    BETA = "BETA"
    GA = "GA"
    DEPRECATED = "DEPRECATED"


@dataclass(frozen=True, slots=True)
class FeatureSpec:
    """What is known of a gate."""

    stage: Stage
    """`AllAlpha` and `AllBeta` go by it."""
    default: bool
    """Its value when nobody sets it."""
    locked: bool = False
    """Whether it keeps its default."""


_ALPHA_OFF: Final = """
APIServerWebhookAuthenticationToken APIServingWithRoutine AtomicWriteVolumeUserFields CBORServingAndStorage
CPUManagerPolicyAlphaOptions CRIListStreaming CSIVolumeHealth ClientsAllowCBOR ClientsPreferCBOR
CloudControllerManagerWatchBasedRoutesReconciliation CloudControllerManagerWebhook CompositePodGroup
ConsistentListFromCacheSkipTimeoutFallback ContainerStopSignals CrossNamespaceVolumeDataSource DRADerivedAttributes
DRADeviceCompatibilityGroups DRAListTypeAttributes DRANodeAllocatableResources DRAOptionalNodeOperations
DRAPartitionableDevicesType DRAResourcePoolStatus DefaultPodSysctls EmptyDirVolumeMode EventedPLEG
EvictionRequestAPI GRPCContainerProbeTLS H2CContainerProbe ImageVolumeWithDigest
InPlacePodVerticalScalingExclusiveCPUs InPlacePodVerticalScalingExclusiveMemory
InPlacePodVerticalScalingMemoryBackedVolumes InPlacePodVerticalScalingSchedulerPreemption
InterPodAffinityHostnameFastPath KubeProxyNFTablesLocalhostNodePorts KubeletAllocatedPodsEndpoint
LoggingAlphaOptions MutablePVNodeAffinity NodeLifecycleConditions PodGroupPreemptionPolicy PodLogsQuerySplitStreams
QOSReserved ReduceDefaultCrashLoopBackOffDecay RuntimeClassInImageCriApi SchedulerPreQueueingHints
ShardedListAndWatch StatefulSetRecreateStrategy StorageVersionAPI TaintTolerationComparisonOperators
TopologyAwareWorkloadScheduling TopologyManagerPolicyAlphaOptions UserNamespacesHostNetworkSupport
VolumeBindMountOptions WindowsCPUAndMemoryAffinity WorkloadWithJob
"""
_BETA_OFF: Final = """
CoordinatedLeaderElection DRAFractionalCapacityRange DRAWorkloadResourceClaims GenericWorkload
LocalStorageCapacityIsolationFSQuotaMonitoring PodAndContainerStatsFromCRI PodLevelResourceManagers
SchedulerAsyncAPICalls
"""
_BETA_ON: Final = """
APIResponseCompression APIServerIdentity AllowParsingUserUIDFromCertAuth AllowUnsafeMalformedObjectDeletion
AtomicFIFO AuthorizePodWebsocketUpgradeCreatePermission CPUManagerPolicyBetaOptions CRDObservedGenerationTracking
ClearingNominatedNodeNameAfterBinding ClientsAllowCARotation ClientsAllowTLSCacheGC ComponentFlagz ComponentStatusz
ConcurrentWatchObjectDecode ConstrainedImpersonation ContainerCheckpoint ContainerRestartRules ContextualLogging
DRAConsumableCapacity DRADeviceBindingConditions DRAPartitionableDevices DRAResourceClaimGranularStatusAuthorization
DRASchedulerFilterTimeout DeclarativeValidationBeta DeploymentReplicaSetTerminatingReplicas DetectCacheInconsistency
EnvFiles EtcdRangeStream ExcludeAdmissionWebhookVirtualResources ExtendWebSocketsToKubelet GracefulNodeShutdown
GracefulNodeShutdownBasedOnPodPriority HPAGeneration HPAOptimizedSelectorStore HPAScaleToZero HugepageAwareEviction
InOrderInformersBatchProcess InPlacePodLevelResourcesVerticalScaling KubeletCrashLoopBackOffMax
KubeletEnsureSecretPulledImages KubeletInUserNamespace KubeletSeparateDiskGC
KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot LoggingBetaOptions
ManifestBasedAdmissionControlConfig MatchLabelKeysInPodTopologySpread MatchLabelKeysInPodTopologySpreadSelectorMerge
MaxUnavailableStatefulSet MemoryQoS MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs
NFTablesNetlink NativeHistograms NodeControllerLeaseCircuitBreaker NominatedNodeNameForExpectation OpenAPIEnums
OpportunisticBatching PersistentVolumeClaimUnusedSinceTime PodDeletionCost PodLevelResources
PodLevelResourcesFixDefaulting PodLevelResourcesFixKubeletQOSClass PodTopologyLabelsAdmission PodsAPI
PortForwardWebsockets ReloadKubeletClientCAFile ReloadKubeletServerCertificateFile RemoteRequestHeaderUID
ResourceHealthStatus ResourceHealthStatusMessage RestartAllContainersOnContainerExits RotateKubeletServerCertificate
SchedulerAsyncPreemption SchedulerPopFromBackoffQ ServiceAccountNodeAudienceRestriction SizeBasedListCostEstimate
StaleControllerConsistencyDaemonSet StaleControllerConsistencyHPA StaleControllerConsistencyJob
StaleControllerConsistencyReplicaSet StaleControllerConsistencyStatefulSet StatefulSetSemanticRevisionComparison
StorageCapacityScoring StorageVersionHash StrictIPCIDRValidation StructuredAuthenticationConfigurationEgressSelector
StructuredAuthenticationConfigurationJWKSMetrics TokenRequestServiceAccountUIDValidation
TopologyManagerPolicyBetaOptions TranslateStreamCloseWebsocketRequests UnauthenticatedHTTP2DOSMitigation
UnknownVersionInteroperabilityProxy UnlockWhileProcessingFIFO VolumeLimitScaling WatchList WatchListClient
WatchListCompression WebhookRoundTripLoadBalancing WindowsGracefulNodeShutdown
"""
_GA_ON: Final = """
AllowServiceExternalIPs ClusterTrustBundle ClusterTrustBundleProjection CustomCPUCFSQuotaPeriod DRADeviceTaintRules
DRADeviceTaints InformerResourceVersion MutatingAdmissionPolicy PodCertificateRequest SELinuxMount
StorageVersionMigrator
"""
_GA_LOCKED: Final = """
CPUManagerPolicyOptions CRDValidationRatcheting CSIServiceAccountTokenSecrets CustomResourceFieldSelectors
DRAAdminAccess DRAExtendedResource DRAPrioritizedList DRAResourceClaimDeviceStatus DeclarativeValidation
DisableAllocatorDualWrite DynamicResourceAllocation ExecProbeTimeout ExternalServiceAccountTokenSigner
HPAConfigurableTolerance HostnameOverride ImageMaximumGCAge ImageVolume InOrderInformers InPlacePodVerticalScaling
InPlacePodVerticalScalingInitContainers JobManagedBy KubeletCgroupDriverFromCRI KubeletFineGrainedAuthz KubeletPSI
KubeletPodResourcesDynamicResources KubeletPodResourcesGet KubeletTracing MatchLabelKeysInPodAffinity
MultiCIDRServiceAllocator MutableCSINodeAllocatableCount NFTablesProxyMode NodeDeclaredFeatures
NodeInclusionPolicyInPodTopologySpread NodeLogQuery NodeSwap PLEGOnDemandRelist PodObservedGenerationTracking
PodReadyToStartContainersCondition PodSchedulingReadiness PreferSameTrafficDistribution ProcMountType
RecoverVolumeExpansionFailure RecursiveReadOnlyMounts RelaxedEnvironmentVariableValidation
RelaxedServiceNameValidation SELinuxChangePolicy SELinuxMountReadWriteOncePod SeparateTaintEvictionController
ServiceAccountTokenJTI ServiceAccountTokenNodeBinding ServiceAccountTokenNodeBindingValidation
ServiceAccountTokenPodNodeInfo SupplementalGroupsPolicy SystemdWatchdog TopologyManagerPolicyOptions
UserNamespacesSupport VolumeAttributesClass WatchCacheInitializationPostStartHook WinDSR WinOverlay
"""
_DEPRECATED_OFF: Final = """
AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests ChangeContainerStatusOnKubeletRestart KMSv1
KubeletRegistrationGetOnExistsOnly WindowsHostNetwork
"""
_DEPRECATED_ON: Final = """
KubeProxyIPVS KubeletPodResourcesListUseActivePods ServiceCIDRStatusFieldWiping StorageNamespaceIndex
"""
_DEPRECATED_LOCKED_OFF: Final = """
AllowOverwriteTerminationGracePeriodSeconds DeclarativeValidationTakeover GitRepoVolumeDriver SeparateCacheWatchRPC
"""
_DEPRECATED_LOCKED_ON: Final = """
AggregatedDiscoveryRemoveBetaType DisableCPUQuotaWithExclusiveCPUs DisableNodeKubeProxyVersion
"""

_SPECS: Final = {
    _ALPHA_OFF: FeatureSpec(Stage.ALPHA, default=False),
    _BETA_OFF: FeatureSpec(Stage.BETA, default=False),
    _BETA_ON: FeatureSpec(Stage.BETA, default=True),
    _GA_ON: FeatureSpec(Stage.GA, default=True),
    _GA_LOCKED: FeatureSpec(Stage.GA, default=True, locked=True),
    _DEPRECATED_OFF: FeatureSpec(Stage.DEPRECATED, default=False),
    _DEPRECATED_ON: FeatureSpec(Stage.DEPRECATED, default=True),
    _DEPRECATED_LOCKED_OFF: FeatureSpec(Stage.DEPRECATED, default=False, locked=True),
    _DEPRECATED_LOCKED_ON: FeatureSpec(Stage.DEPRECATED, default=True, locked=True),
}

KNOWN_FEATURE_GATES: Final[Mapping[str, FeatureSpec]] = {
    name: spec for names, spec in _SPECS.items() for name in names.split()
}
"""Every gate but `AllAlpha` and `AllBeta`, by name."""

DEPENDENCIES: Final[Mapping[str, tuple[str, ...]]] = {
    "ClusterTrustBundleProjection": ("ClusterTrustBundle",),
    "CompositePodGroup": (
        "GenericWorkload",
        "TopologyAwareWorkloadScheduling",
    ),
    "DRADeviceCompatibilityGroups": ("DRAPartitionableDevices",),
    "DRADeviceTaintRules": ("DRADeviceTaints",),
    "DRAFractionalCapacityRange": ("DRAConsumableCapacity",),
    "DRAPartitionableDevicesType": (
        "DRAPartitionableDevices",
        "DRAResourcePoolStatus",
    ),
    "DRAWorkloadResourceClaims": ("GenericWorkload",),
    "GracefulNodeShutdownBasedOnPodPriority": ("GracefulNodeShutdown",),
    "InPlacePodLevelResourcesVerticalScaling": ("PodLevelResources",),
    "MatchLabelKeysInPodTopologySpreadSelectorMerge": ("MatchLabelKeysInPodTopologySpread",),
    "NodeControllerLeaseCircuitBreaker": ("AtomicFIFO",),
    "PodGroupPreemptionPolicy": ("GenericWorkload",),
    "PodLevelResourceManagers": ("PodLevelResources",),
    "PodLevelResourcesFixDefaulting": ("PodLevelResources",),
    "PodLevelResourcesFixKubeletQOSClass": ("PodLevelResources",),
    "ResourceHealthStatusMessage": ("ResourceHealthStatus",),
    "RestartAllContainersOnContainerExits": ("ContainerRestartRules",),
    "StaleControllerConsistencyDaemonSet": ("AtomicFIFO",),
    "StaleControllerConsistencyHPA": ("AtomicFIFO",),
    "StaleControllerConsistencyJob": ("AtomicFIFO",),
    "StaleControllerConsistencyReplicaSet": ("AtomicFIFO",),
    "StaleControllerConsistencyStatefulSet": ("AtomicFIFO",),
    "StorageVersionAPI": ("APIServerIdentity",),
    "TopologyAwareWorkloadScheduling": ("GenericWorkload",),
    "UnknownVersionInteroperabilityProxy": ("APIServerIdentity",),
    "WindowsGracefulNodeShutdown": ("GracefulNodeShutdown",),
    "WorkloadWithJob": ("GenericWorkload",),
}
"""What a gate needs to be on when it is on, without the gates that nobody can switch off."""
